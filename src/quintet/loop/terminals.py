"""The five terminals of a run: created together, found again on resume, ended together."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from quintet.api.client import ApiClient
from quintet.api.status import AT_REST, TerminalStatus
from quintet.config import Settings
from quintet.errors import ApiError, PassingFault, RunError, TerminalGone
from quintet.loop.clock import Clock
from quintet.loop.handoff import Patience
from quintet.loop.journal import Event, PermissionAsked, TerminalCreated, Warned
from quintet.loop.state import State, Terminal
from quintet.roles import ROLES, Role

READY_SECONDS: Final = 600.0
"""how long an agent CLI may take to start"""
RENAME_SECONDS: Final = 5.0
REACH_SECONDS: Final = 15.0
EXIT_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True)
class Terminals:
    """Creates, checks and ends the terminals of a state."""

    api: ApiClient
    settings: Settings
    clock: Clock
    emit: Callable[[Event], None]

    def init_new_run(self, state: State, save: Callable[[State], None]) -> State:
        """Create session and terminals in role order, wait for them side by side, and rename them.

        Where that fails, those that exist are ended. The state is saved after each, so that the next start knows
        what an interrupted one has left.
        """
        begun = self.clock.now()
        try:
            for role in ROLES:
                try:
                    state = self._create(role, state)
                except ApiError as error:
                    raise RunError(f"{role} could not be started: {error}") from error
                save(state)
            self._wait_until_ready(state, begun)
            self.rename(state)
        except BaseException:
            exit_terminals(self.api, state)
            raise
        return state

    def _create(self, role: Role, state: State) -> State:
        agent = self.settings.agents[role.name]
        options: dict[str, Any] = {"model": agent.model, "args": agent.args}
        if role is ROLES[0]:
            wish = state.session_name
            answer = self.api.create_session(agent.profile, agent.provider, session_name=wish, **options)
            state = replace(state, session_name=str(answer.get("session_name") or ""))
        else:
            answer = self.api.create_terminal(state.session_name, agent.profile, agent.provider, **options)
        return replace(state, terminals=state.terminals | {role.name: Terminal(answer["id"], agent.provider)})

    def _wait_until_ready(self, state: State, begun: float) -> None:
        waiting = list(ROLES)
        asking: set[Role] = set()
        while waiting:
            for role in list(waiting):
                terminal = state.terminals[role.name]
                status = self._reach(terminal.id)
                if status is TerminalStatus.ERROR:
                    reason = self.api.get_reason(terminal.id)
                    raise RunError(f"{role} (terminal {terminal.id}): {terminal.provider} did not start{reason}")
                if status is TerminalStatus.WAITING_USER_ANSWER and role not in asking:
                    asking.add(role)
                    self.emit(PermissionAsked(role=role.name, terminal=terminal.id, accepted=False))
                if status in AT_REST:
                    waiting.remove(role)
                    seconds = round(self.clock.now() - begun, 3)
                    told = TerminalCreated(
                        role=role.name, terminal=terminal.id, provider=terminal.provider, seconds=seconds
                    )
                    self.emit(told)
            if waiting and self.clock.now() - begun > READY_SECONDS:
                names = ", ".join(role.name for role in waiting)
                raise RunError(
                    f"{names}: not ready after {READY_SECONDS:g} s; look at the terminals (a login, a dialog?)"
                )
            if waiting:
                self.clock.sleep(LOOK_SECONDS)

    def rename(self, state: State) -> None:
        """Name each conversation after its role. A failure is only a warning."""
        waiting: dict[Role, float] = {}
        for role in ROLES:
            terminal = state.terminals[role.name].id
            try:
                self.api.send_input(terminal, f"/rename {role}-{terminal}", seconds=RENAME_SECONDS)
                waiting[role] = self.clock.now() + RENAME_SECONDS
            except ApiError as error:
                self.emit(Warned(text=f"{role} could not be renamed: {error}"))
        while waiting:
            for role, deadline in list(waiting.items()):
                if self._at_rest(state.terminals[role.name].id):
                    del waiting[role]
                elif self.clock.now() >= deadline:
                    del waiting[role]
                    self.emit(Warned(text=f"{role} was not idle within {RENAME_SECONDS:g} s after its renaming"))
            if waiting:
                self.clock.sleep(LOOK_SECONDS)

    def verify_resume_terminals(self, state: State) -> None:
        """Make sure that every terminal of a saved run is still there."""
        for role in ROLES:
            terminal, configured = state.terminals[role.name], self.settings.agents[role.name].provider
            if terminal.provider != configured:
                self.emit(Warned(text=f"{role} goes on with {terminal.provider}, although {configured} is configured"))
            try:
                status = self._reach(terminal.id)
            except TerminalGone:
                again = "RESUME=0 starts a new run"
                raise RunError(f"cannot resume: the terminal {terminal.id} of {role} is gone; {again}") from None
            if status is TerminalStatus.ERROR:
                self.emit(Warned(text=f"the agent of {role} (terminal {terminal.id}) has failed or is gone"))

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


def exit_terminals(api: ApiClient, state: State) -> None:
    """End every terminal that exists, all at once and within a bounded time: a server that hangs keeps nobody."""
    ids = [terminal.id for terminal in state.terminals.values() if terminal.id]
    threads = [threading.Thread(target=_exit, args=(api, terminal), daemon=True) for terminal in ids]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + EXIT_SECONDS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))


def _exit(api: ApiClient, terminal: str) -> None:
    try:
        api.exit_terminal(terminal)
    except ApiError:
        return  # it is gone, or nobody can end it now
