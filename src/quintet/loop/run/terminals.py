"""The five terminals of a run: created together, found again on resume, replaced where lost, ended together."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from quintet.api.backend import Backend, LaunchOptions, TerminalView
from quintet.api.models import OwnAgent, Sandbox
from quintet.api.status import AT_REST, TerminalStatus
from quintet.config import Settings
from quintet.errors import ApiError, RunError, TerminalGone
from quintet.layout import TMP, caches_folder, checks_git_folder, private_git_folder, user_state_folder
from quintet.loop.decide.state import State, TerminalRef, has_all_terminals
from quintet.loop.decide.steps import Step, TerminalsChanged
from quintet.loop.journal import PermissionAsked, TerminalCreated, TerminalLost
from quintet.loop.record.store import RunStore
from quintet.loop.run.clock import Clock
from quintet.loop.run.retry import retry
from quintet.roles import ROLES, Role
from quintet.sandbox.private_git import make_private_git

READY_SECONDS: Final = 600.0
"""how long an agent CLI may take to start"""
RENAME_SECONDS: Final = 5.0
REACH_SECONDS: Final = 15.0
EXIT_SECONDS: Final = 3.5
"""more than the server takes for an agent that does not end when it is asked to"""
LOOK_SECONDS: Final = 0.1
ASK: Final = "ask"
NO_OWN_AGENTS: Final = "this terminal server cannot start an agent of your own (`providers`)"
GONE: Final = "it is gone"
OTHER_SANDBOX: Final = "it was started with another setting of SANDBOX"


@dataclass(frozen=True)
class Terminals:
    """Creates, checks and replaces the terminals of a run, and keeps its state up to date with them."""

    backend: Backend
    settings: Settings
    clock: Clock
    store: RunStore

    def start_all(self, step: Step, session: str) -> None:
        """Create session and terminals in role order, wait for them side by side, and rename them.

        Where that fails, those that exist are ended. The state is saved after each, so that the next start knows
        what an interrupted one has left; it names fewer than five until all are ready, and nobody resumes into it.
        """
        if self.settings.permissions == ASK and not self.backend.takes_permissions:
            self.store.warn("PERMISSIONS=ask has no effect: this terminal server decides what its agents may do")
        if (own := self.settings.own_agents) and not self.backend.takes_own_agents:
            raise RunError(f"{', '.join(own)}: {NO_OWN_AGENTS}; unset API")
        self._start(step, ROLES, session, {})

    def replace_lost(self, step: Step, lost: Mapping[Role, str]) -> None:
        """Start lost terminals again, with their conversations where that is possible; `lost` says why each is.

        Where all are lost, they get a new session: the old one is most likely gone too. What is saved after each
        start still names the others' old terminals, so that the next start finds out what is lost.
        """
        state = self.store.state
        for role, reason in lost.items():
            self.store.emit(TerminalLost(role=role.name, terminal=state.terminals[role.name].id, reason=reason))
        all_lost = len(lost) == len(ROLES)
        session = self.backend.session_name(state.run_id) if all_lost else state.session_name
        previous = {role: state.terminals[role.name].id for role in lost}
        try:
            self._start(step, list(lost), session, previous)
        except RunError as error:
            self.store.warn(f"{error}; once more, without the earlier conversation")
            self._start(step, list(lost), session, {})
        _at_once(self.backend.forget_terminal, list(previous.values()))
        if all_lost:  # a death in the middle of this may have left something in the old one
            _at_once(self.backend.delete_session, [state.session_name])

    def _start(self, step: Step, roles: Sequence[Role], session: str, previous: Mapping[Role, str]) -> None:
        """Start the terminals of some roles and fold them in one by one; where that fails, end what was started."""
        begun, named = self.clock.now(), self.store.state.terminals
        started: dict[Role, TerminalRef] = {}
        is_alone = not any(named[role.name].id for role in ROLES if role not in roles)
        # the fifth terminal of a new session is folded in only when all are ready: see start_all
        is_whole_session = is_alone and not previous
        if self.settings.sandbox == "on":
            for folder in (self._private_git, checks_git_folder(self.store.state.run_id)):
                make_private_git(self.settings.workspace.tree, folder)
        try:
            # a session that nobody has written down would outlive a kill for ever
            self.store.fold(step, TerminalsChanged(named, session))
            for role in roles:
                is_first = is_alone and not started
                view = self._create(role, session, previous.get(role, ""), is_first=is_first)
                session = view.session_name if is_first else session
                started[role] = TerminalRef(view.id, self.settings.agents[role.name].provider)
                named = named | {role.name: started[role]}
                if not is_whole_session or len(started) < len(ROLES):
                    self.store.fold(step, TerminalsChanged(named, session))
            self._wait_until_ready(started, session, begun, resumed=bool(previous))
            self.rename(started)
        except BaseException:
            ids = [terminal.id for terminal in started.values()]
            _at_once(self.backend.exit_terminal, ids)
            if is_alone:
                _at_once(self.backend.delete_session, [session])  # one whose creation was not answered may be in it
            if previous:
                _at_once(self.backend.forget_terminal, ids)
            raise
        if is_whole_session:
            self.store.fold(step, TerminalsChanged(named, session))

    def _create(self, role: Role, session: str, continues: str, *, is_first: bool) -> TerminalView:
        agent = self.settings.agents[role.name]
        options: LaunchOptions = {
            "model": agent.model,
            "args": agent.args,
            "permissions": self.settings.permissions,
            "continues": continues,
            "sandbox": self._sandbox(role),
            "agent": own_agent(self.settings, agent.provider),
        }
        try:
            if is_first:
                return self.backend.create_session(agent.profile, agent.provider, session_name=session, **options)
            return self.backend.create_terminal(session, agent.profile, agent.provider, **options)
        except ApiError as error:
            raise RunError(f"{role} could not be started: {error}") from error

    def _sandbox(self, role: Role) -> Sandbox | None:
        """What the role's agent can reach; None: all that the user can."""
        settings, workspace = self.settings, self.settings.workspace
        if settings.sandbox != "on":
            return None
        checkout = [workspace.project] if workspace.project != workspace.tree else []
        hidden = [user_state_folder(), *(path / TMP for path in checkout)]
        return Sandbox(
            tmp=str(self.store.responses.tmp_of(role)),
            git=str(self._private_git),
            write=list(settings.sandbox_write),
            hide=[*map(str, hidden), *settings.sandbox_hide],
            show=[*map(str, checkout), *settings.sandbox_show],
            env=list(settings.sandbox_env),
            caches=str(caches_folder(workspace.project)),
            network=settings.sandbox_network,
            domains=list(settings.domains_of(settings.agents[role.name].provider, os.environ)),
        )

    @property
    def _private_git(self) -> Path:
        return private_git_folder(self.store.state.run_id)

    def _is_placed(self, role: Role, view: TerminalView) -> bool:
        """Whether a terminal is in the sandbox that the settings ask for, or in none where they ask for none."""
        wanted = self._sandbox(role)
        return (view.sandbox, view.network) == ((wanted.tmp, wanted.network_words) if wanted else ("", ""))

    def _wait_until_ready(
        self, started: Mapping[Role, TerminalRef], session: str, begun: float, *, resumed: bool
    ) -> None:
        waiting = list(started)
        asking: dict[Role, float] = {}
        while waiting:
            for role in list(waiting):
                terminal = started[role]
                view = self._reach(terminal.id)
                asks = view.status is TerminalStatus.WAITING_USER_ANSWER
                if not self._is_placed(role, view):
                    raise RunError(f"{role} (terminal {terminal.id}): {OTHER_SANDBOX}")
                if view.status is TerminalStatus.ERROR or (asks and resumed):
                    raise RunError(
                        f"{role} (terminal {terminal.id}): {terminal.provider} did not start{self._why(view)}"
                    )
                if asks:
                    self._ask_user(role, terminal.id, view, asking)
                if view.status in AT_REST:
                    waiting.remove(role)
                    self.store.emit(
                        TerminalCreated(
                            role=role.name,
                            terminal=terminal.id,
                            provider=terminal.provider,
                            seconds=round(self.clock.now() - begun, 3),
                            session=session,
                            continues=view.continues,
                        )
                    )
            if waiting and self.clock.now() - begun > READY_SECONDS:
                names = ", ".join(role.name for role in waiting)
                raise RunError(
                    f"{names}: not ready after {READY_SECONDS:g} s; look at the terminals (a login, a dialog?)"
                )
            if waiting:
                self.clock.sleep(LOOK_SECONDS)

    def _why(self, view: TerminalView) -> str:
        """Why a terminal has failed and what it showed last, as the end of a message."""
        reason = f" ({view.reason})" if view.reason else ""
        lines = self.backend.get_last_lines(view)
        return f"{reason}; it said: {lines}" if lines else reason

    def _ask_user(self, role: Role, terminal: str, view: TerminalView, asking: dict[Role, float]) -> None:
        """Tell the user what the agent cannot start without; raise where nobody comes to settle it.

        `asking` has by role when that was told, or when somebody was last seen at the terminal.
        """
        now = self.clock.now()
        if role not in asking:
            asking[role] = now
            self.store.emit(PermissionAsked(role=role.name, terminal=terminal, accepted=False, reason=view.reason))
        if view.attached:
            asking[role] = now
        if view.start_seconds is not None and now - asking[role] > view.start_seconds:
            raise RunError(
                f"{role} (terminal {terminal}): {view.reason}; nobody did so within {view.start_seconds:g} s"
            )

    def rename(self, terminals: Mapping[Role, TerminalRef]) -> None:
        """Name each conversation after its role. A failure is only a warning."""
        waiting: dict[Role, float] = {}
        for role, terminal in terminals.items():
            try:
                self.backend.send_input(terminal.id, f"/rename {role}-{terminal.id}", seconds=RENAME_SECONDS)
                waiting[role] = self.clock.now() + RENAME_SECONDS
            except ApiError as error:
                self.store.warn(f"{role} could not be renamed: {error}")
        while waiting:
            for role, deadline in list(waiting.items()):
                if self._is_at_rest(terminals[role].id):
                    del waiting[role]
                elif self.clock.now() >= deadline:
                    del waiting[role]
                    self.store.warn(f"{role} was not idle within {RENAME_SECONDS:g} s after its renaming")
            if waiting:
                self.clock.sleep(LOOK_SECONDS)

    def verify_resume_terminals(self) -> dict[Role, str]:
        """Make sure that every terminal of the saved run is still there; the answer is what has to be replaced.

        Where a lost terminal cannot be replaced it is an error, and an agent that has failed is a warning.
        """
        terminals = self.store.state.terminals
        for role in ROLES:
            provider, configured = terminals[role.name].provider, self.settings.agents[role.name].provider
            if provider != configured:
                self.store.warn(f"{role} goes on with {provider}, although {configured} is configured")
        lost = self.find_lost()
        if self.can_replace:
            return lost
        for role, reason in lost.items():
            name = terminals[role.name].id
            if reason in (GONE, OTHER_SANDBOX):
                again = "RESUME=0 starts a new run"
                why = reason.removeprefix("it ")
                raise RunError(f"cannot resume: the terminal {name} of {role} {why}; {again}")
            self.store.warn(f"the agent of {role} (terminal {name}) has failed or is gone")
        return {}

    @property
    def can_replace(self) -> bool:
        """Whether a lost terminal is replaced."""
        return self.backend.replaces_terminals and self.settings.recover_terminals

    def find_lost(self) -> dict[Role, str]:
        """The terminals that will never answer again, each with the reason."""
        lost = {}
        for role in ROLES:
            try:
                view = self._reach(self.store.state.terminals[role.name].id)
                if view.status is TerminalStatus.ERROR:
                    lost[role] = view.reason or "its agent has failed"
                elif not self._is_placed(role, view):
                    lost[role] = OTHER_SANDBOX
            except TerminalGone:
                lost[role] = GONE
        return lost

    def _reach(self, terminal: str) -> TerminalView:
        return retry(lambda: self.backend.get_terminal(terminal), self.clock, REACH_SECONDS)

    def _is_at_rest(self, terminal: str) -> bool:
        try:
            return self.backend.get_terminal(terminal).status in AT_REST
        except ApiError:
            return False


def own_agent(settings: Settings, provider: str) -> OwnAgent | None:
    """An agent that the user has defined, as a terminal server is told of it; None for one that Quintet knows."""
    own = settings.providers.get(provider)
    return OwnAgent.model_validate(asdict(own)) if own else None


def end_terminals(backend: Backend, state: State) -> bool:
    """End every terminal that a state names, all at once and within a bounded time, also where the server hangs.

    False where it has not answered to all of that.
    """
    return _at_once(backend.exit_terminal, [terminal.id for terminal in state.terminals.values()])


def end_session(backend: Backend, state: State) -> bool:
    """End all that a run has started on the server, also what its state does not name."""
    ended = end_terminals(backend, state)
    return _at_once(backend.delete_session, [state.session_name]) and ended


def end_terminals_of(backend: Backend, state: State) -> bool:
    """End the terminals of a run; its session too where that is the run's alone, or where its creation was
    interrupted: then it may hold more than the state names."""
    end = end_session if backend.owns_sessions or not has_all_terminals(state) else end_terminals
    return end(backend, state)


def is_there(backend: Backend, terminal: str) -> bool:
    """Whether a terminal lives, as far as its server tells at once."""
    try:
        return bool(terminal) and backend.get_terminal(terminal).status is not TerminalStatus.ERROR
    except ApiError:
        return False


def _at_once(order: Callable[[str], None], ids: Sequence[str]) -> bool:
    answered: list[str] = []
    wanted = [name for name in ids if name]
    threads = [threading.Thread(target=_try, args=(order, name, answered), daemon=True) for name in wanted]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + EXIT_SECONDS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return len(answered) == len(wanted)


def _try(order: Callable[[str], None], name: str, answered: list[str]) -> None:
    try:
        order(name)
    except ApiError:  # of one that is gone already the client makes none
        return
    answered.append(name)
