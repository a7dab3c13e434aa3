"""The connection of a run to its terminal server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quintet.api.backend import Backend
from quintet.api.client import ApiClient
from quintet.api.quintet_backend import backend_of
from quintet.errors import ApiError
from quintet.loop.run.clock import Clock
from quintet.loop.run.retry import retry
from quintet.loop.run.terminals import REACH_SECONDS

Connect = Callable[[str, Sequence[str], Callable[[str], None]], ApiClient]
"""from an address (empty: bring your own server), the names of the sessions that are there and a way to warn the user
to a client"""


@dataclass
class ServerConnection:
    """Connects when the server is first needed: what follows a PASS needs none."""

    connect: Connect
    api: str
    sessions: Sequence[str]
    clock: Clock
    warn: Callable[[str], None]
    _backend: Backend | None = None

    def backend(self) -> Backend:
        """The server; raises where it cannot be reached for a while."""
        if self._backend is None:
            client = self.connect(self.api, self.sessions, self.warn)
            try:
                self._backend = retry(lambda: backend_of(client), self.clock, REACH_SECONDS)
            except ApiError:
                client.close()
                raise
        return self._backend

    @property
    def is_connected(self) -> bool:
        return self._backend is not None

    def close(self) -> None:
        """Close the connection where there is one."""
        if self._backend is not None:
            self._backend.close()
