"""The five terminals of a run: created together, found again on resume, replaced where lost, ended together."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quintet.api.client import ApiClient, LaunchOptions
from quintet.api.status import AT_REST, TerminalStatus
from quintet.config import Settings
from quintet.errors import ApiError, PassingFault, RunError, TerminalGone
from quintet.loop.decide.state import State, Terminal
from quintet.loop.journal import Event, PermissionAsked, TerminalCreated, TerminalLost, Warned
from quintet.loop.run.clock import Clock
from quintet.loop.run.turn import Patience
from quintet.roles import ROLES, Role

READY_SECONDS: Final = 600.0
"""how long an agent CLI may take to start"""
RENAME_SECONDS: Final = 5.0
REACH_SECONDS: Final = 15.0
EXIT_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.1
Save = Callable[[State], None]
ASK: Final = "ask"


@dataclass(frozen=True)
class Terminals:
    """Creates, checks, replaces and ends the terminals of a state."""

    api: ApiClient
    settings: Settings
    clock: Clock
    emit: Callable[[Event], None]

    def init_new_run(self, state: State, save: Save) -> State:
        """Create session and terminals in role order, wait for them side by side, and rename them.

        Where that fails, those that exist are ended. The state is saved after each, so that the next start knows
        what an interrupted one has left.
        """
        if self.settings.permissions == ASK and not self.api.own:
            self.emit(Warned(text="PERMISSIONS=ask has no effect: this terminal server decides what its agents may do"))
        return self._start(state, ROLES, {}, save)

    def replace_lost(self, state: State, lost: Mapping[Role, str], session_name: str, save: Save) -> State:
        """Start lost terminals again, with their conversations where that is possible; `lost` says why each is.

        Where all are lost, they get a session of that name: the old one is most likely gone too. What is saved after
        each start still names the others' old terminals, so that the next start finds out what is lost.
        """
        for role, reason in lost.items():
            self.emit(TerminalLost(role=role.name, terminal=state.terminals[role.name].id, reason=reason))
        blank = {role.name: Terminal("", state.terminals[role.name].provider) for role in lost}
        fresh = replace(state, terminals=state.terminals | blank)
        if len(lost) == len(ROLES):
            fresh = replace(fresh, session_name=session_name)
        previous = {role: state.terminals[role.name].id for role in lost}

        def save_partial(partial: State) -> None:
            known = {name: terminal for name, terminal in partial.terminals.items() if terminal.id}
            save(replace(partial, terminals=state.terminals | known))

        try:
            started = self._start(fresh, list(lost), previous, save_partial)
        except RunError as error:
            self.emit(Warned(text=f"{error}; once more, without the earlier conversation"))
            started = self._start(fresh, list(lost), {}, save_partial)
        _at_once(self.api.forget_terminal, list(previous.values()))
        if started.session_name != state.session_name:  # a death in the middle of this may have left something in it
            _at_once(self.api.delete_session, [state.session_name])
        return started

    def _start(self, state: State, roles: Sequence[Role], previous: Mapping[Role, str], save: Save) -> State:
        begun = self.clock.now()
        others = [terminal.id for terminal in state.terminals.values()]
        try:
            save(state)  # a session that nobody has written down would outlive a kill for ever
            for role in roles:
                try:
                    state = self._create(role, state, previous.get(role, ""))
                except ApiError as error:
                    reason = error.detail if self.api.own and error.detail else str(error)
                    raise RunError(f"{role.label} could not be started: {reason}") from error
                save(state)
            self._wait_until_ready(state, roles, begun, resumed=bool(previous))
            self.rename(state, roles)
        except BaseException:
            if any(others):
                exit_terminals(self.api, state, spared=others)
            else:
                end_session(self.api, state)  # one whose creation was not answered may be there all the same
            if previous:
                _at_once(self.api.forget_terminal, [state.terminals[role.name].id for role in roles])
            raise
        return state

    def _create(self, role: Role, state: State, continues: str) -> State:
        agent = self.settings.agents[role.name]
        options: LaunchOptions = {"model": agent.model, "args": agent.args}
        if self.api.own:
            options["permissions"] = self.settings.permissions
        if continues:
            options["continues"] = continues
        if any(terminal.id for terminal in state.terminals.values()):
            answer = self.api.create_terminal(state.session_name, agent.profile, agent.provider, **options)
        else:
            wish = state.session_name
            answer = self.api.create_session(agent.profile, agent.provider, session_name=wish, **options)
            state = replace(state, session_name=str(answer.get("session_name") or ""))
        return replace(state, terminals=state.terminals | {role.name: Terminal(answer["id"], agent.provider)})

    def _wait_until_ready(self, state: State, roles: Sequence[Role], begun: float, *, resumed: bool) -> None:
        waiting = list(roles)
        asking: dict[Role, float] = {}
        while waiting:
            for role in list(waiting):
                terminal = state.terminals[role.name]
                status = self._reach(terminal.id)
                asks = status is TerminalStatus.WAITING_USER_ANSWER
                if status is TerminalStatus.ERROR or (asks and resumed):
                    why = f"{self.api.get_reason(terminal.id)}{self.api.get_last_words(terminal.id)}"
                    raise RunError(f"{role.label} (terminal {terminal.id}): {terminal.provider} did not start{why}")
                if asks:
                    self._ask_user(role, terminal.id, asking)
                if status in AT_REST:
                    waiting.remove(role)
                    self._tell_ready(role, state, round(self.clock.now() - begun, 3), resumed=resumed)
            if waiting and self.clock.now() - begun > READY_SECONDS:
                names = ", ".join(role.label for role in waiting)
                raise RunError(
                    f"{names}: not ready after {READY_SECONDS:g} s; look at the terminals (a login, a dialog?)"
                )
            if waiting:
                self.clock.sleep(LOOK_SECONDS)

    def _ask_user(self, role: Role, terminal: str, asking: dict[Role, float]) -> None:
        """Tell the user what the agent cannot start without; raise where nobody comes to settle it.

        `asking` has by role when that was told, or when somebody was last seen at the terminal.
        """
        reason = self.api.get_reason(terminal).strip(" ()")
        if role not in asking:
            asking[role] = self.clock.now()
            self.emit(PermissionAsked(role=role.name, terminal=terminal, accepted=False, reason=reason))
        told = self.api.get_terminal(terminal)
        if told.get("attached"):
            asking[role] = self.clock.now()
        limit = told.get("start_seconds")
        if isinstance(limit, int | float) and self.clock.now() - asking[role] > limit:
            raise RunError(f"{role.label} (terminal {terminal}): {reason}; nobody did so within {limit:g} s")

    def _tell_ready(self, role: Role, state: State, seconds: float, *, resumed: bool) -> None:
        terminal, continues = state.terminals[role.name], ""
        if resumed:
            continues = str(self.api.get_terminal(terminal.id).get("continues") or "")
        self.emit(
            TerminalCreated(
                role=role.name,
                terminal=terminal.id,
                provider=terminal.provider,
                seconds=seconds,
                session=state.session_name,
                continues=continues,
            )
        )

    def rename(self, state: State, roles: Sequence[Role] = ROLES) -> None:
        """Name each conversation after its role. A failure is only a warning."""
        waiting: dict[Role, float] = {}
        for role in roles:
            terminal = state.terminals[role.name].id
            try:
                self.api.send_input(terminal, f"/rename {role}-{terminal}", seconds=RENAME_SECONDS)
                waiting[role] = self.clock.now() + RENAME_SECONDS
            except ApiError as error:
                self.emit(Warned(text=f"{role.label} could not be renamed: {error}"))
        while waiting:
            for role, deadline in list(waiting.items()):
                if self._at_rest(state.terminals[role.name].id):
                    del waiting[role]
                elif self.clock.now() >= deadline:
                    del waiting[role]
                    self.emit(Warned(text=f"{role.label} was not idle within {RENAME_SECONDS:g} s after its renaming"))
            if waiting:
                self.clock.sleep(LOOK_SECONDS)

    def verify_resume_terminals(self, state: State) -> dict[Role, str]:
        """Make sure that every terminal of a saved run is still there; the answer is what has to be replaced.

        Where that is not ours to do, a terminal that is gone is an error, and an agent that has failed a warning.
        """
        for role in ROLES:
            terminal, configured = state.terminals[role.name], self.settings.agents[role.name].provider
            if terminal.provider != configured:
                self.emit(
                    Warned(text=f"{role.label} goes on with {terminal.provider}, although {configured} is configured")
                )
        lost = self.find_lost(state)
        if self.recovers:
            return lost
        for role, reason in lost.items():
            name = state.terminals[role.name].id
            if reason == GONE:
                again = "RESUME=0 starts a new run"
                raise RunError(f"cannot resume: the terminal {name} of {role.label} is gone; {again}")
            self.emit(Warned(text=f"the agent of {role.label} (terminal {name}) has failed or is gone"))
        return {}

    @property
    def recovers(self) -> bool:
        """Whether a lost terminal is replaced."""
        return self.api.own and self.settings.recover_terminals

    def find_lost(self, state: State) -> dict[Role, str]:
        """The terminals that will never answer again, each with the reason."""
        lost = {}
        for role in ROLES:
            terminal = state.terminals[role.name].id
            try:
                if self._reach(terminal) is TerminalStatus.ERROR:
                    lost[role] = self.api.get_reason(terminal).strip(" ()") or "its agent has failed"
            except TerminalGone:
                lost[role] = GONE
        return lost

    def _reach(self, terminal: str) -> TerminalStatus:
        patience = Patience(self.clock, REACH_SECONDS)
        while True:
            try:
                return self.api.get_status(terminal)
            except PassingFault as fault:
                patience.wait(fault)

    def _at_rest(self, terminal: str) -> bool:
        try:
            return self.api.get_status(terminal) in AT_REST
        except ApiError:
            return False


GONE: Final = "it is gone"


def exit_terminals(api: ApiClient, state: State, spared: Sequence[str] = ()) -> bool:
    """End every terminal that exists, all at once and within a bounded time: a server that hangs keeps nobody.

    False where it has not answered to all of that.
    """
    ids = [terminal.id for terminal in state.terminals.values() if terminal.id and terminal.id not in spared]
    return _at_once(api.exit_terminal, ids)


def end_session(api: ApiClient, state: State) -> bool:
    """End all that a run has started on the server, also what its state does not name."""
    ended = exit_terminals(api, state)
    return _at_once(api.delete_session, [state.session_name]) and ended


def is_there(api: ApiClient, terminal: str) -> bool:
    """Whether a terminal lives, as far as its server tells at once."""
    try:
        return bool(terminal) and api.get_status(terminal, REACH_SECONDS) is not TerminalStatus.ERROR
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
