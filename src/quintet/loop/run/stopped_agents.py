"""Keep all agents of a run still while its checks judge their work."""

from collections.abc import Callable
from contextlib import suppress

from quintet.errors import ApiError, TerminalGone
from quintet.loop.record.store import RunStore
from quintet.loop.run.connection import ServerConnection
from quintet.loop.run.retry import retry
from quintet.loop.run.strays import end_strays
from quintet.loop.run.terminals import REACH_SECONDS


class StoppedAgents:
    """Stops the processes of all agents and lets them go on."""

    def __init__(self, server: ServerConnection, store: RunStore) -> None:
        self._server, self._store = server, store
        self._are_stopped = False

    def stop(self) -> None:
        """End what turns have left running and stop the rest, until `go_on`."""
        session = self._store.state.session_name
        if session and not self._are_stopped:
            end_strays(self._server.backend(), self._store)
            self._are_stopped = True
            with suppress(TerminalGone):  # nothing of it runs
                self._repeat(lambda: self._server.backend().stop_processes(session))

    def go_on(self) -> None:
        """Continue what was stopped."""
        if self._are_stopped:
            self._are_stopped = False
            self.go_on_after_kill()

    def go_on_after_kill(self) -> None:
        """Continue what this process, or one that was killed, has stopped."""
        if session := self._store.state.session_name:
            with suppress(ApiError):  # a server that does not answer now is found out by the prompt
                self._repeat(lambda: self._server.backend().continue_processes(session))

    def _repeat(self, call: Callable[[], None]) -> None:
        """Make a request until its answer arrives: agents that stay stopped would never reply."""
        retry(call, self._server.clock, REACH_SECONDS)
