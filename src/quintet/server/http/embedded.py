"""The terminal server inside a run: a thread of this process, on a free loopback port, with a random token."""

import json
import os
import secrets
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from quintet import files
from quintet.errors import ServerError
from quintet.layout import GITIGNORE
from quintet.server.http.app import PageRoutes, create_app
from quintet.server.http.listen import bind, make_server
from quintet.server.names import session_name
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.direct_access import tmux_version
from quintet.server.terminal.session_manager import SessionManager

START_SECONDS: Final = 30.0
LAST_EVENTS_SECONDS: Final = 1.5
"""how long an open page has to get the last events"""


class EmbeddedServer:
    """Serves the sessions that it is given and those that are created through it. Its terminals outlive it."""

    def __init__(
        self,
        sessions: Iterable[str] = (),
        discovery: Path | None = None,
        state_folder: StateFolder | None = None,
        pages: PageRoutes | None = None,
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._sessions = [session_name(name) for name in sessions]
        self._discovery = discovery
        self._discovery_is_old = True
        self._state_folder = state_folder or StateFolder()
        self._manager: SessionManager | None = None
        self._socket = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        app = create_app(self._make_sessions, token=self.token, pages=pages)
        self._server = make_server(app)
        self._thread = threading.Thread(target=self._serve, name="quintet-server", daemon=True)

    def start(self) -> Self:
        """Start, and wait until it answers."""
        tmux_version()
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise ServerError("the terminal server inside this run did not start")
            time.sleep(0.002)
        try:
            self._write_discovery()
        except OSError as error:
            self.stop()
            raise ServerError(f"{self._discovery}: cannot be written ({error.strerror})") from None
        return self

    def stop(self) -> None:
        """Stop serving; the terminals go on."""
        if self._manager is not None and self._manager.events.watched:
            time.sleep(LAST_EVENTS_SECONDS)
        self._server.should_exit = True
        self._thread.join(START_SECONDS)
        self._socket.close()
        if self._discovery is not None:
            with suppress(OSError):  # a file that stays names a server that does not answer
                self._discovery.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _make_sessions(self) -> SessionManager:
        self._manager = SessionManager(
            self._state_folder, self._sessions, on_session=self._add_session, on_tick=self._restore_discovery
        )
        return self._manager

    def _add_session(self, name: str) -> None:
        if name not in self._sessions:
            self._sessions.append(name)
        self._discovery_is_old = True
        self._restore_discovery()

    def _restore_discovery(self) -> None:
        """Write the discovery file again where it is gone: an agent may run `git clean -fdx`. Each tick tries it."""
        if self._discovery is not None and (self._discovery_is_old or not self._discovery.exists()):
            with suppress(OSError):
                self._write_discovery()

    def _write_discovery(self) -> None:
        """Write the file that says where this server is, for `status`, `watch` and others; private."""
        path = self._discovery
        if path is None:
            return
        content = {"url": self.url, "token": self.token, "pid": os.getpid(), "sessions": self._sessions}
        wd = path.parents[1]
        if not path.parent.exists():
            files.write(path.parent / GITIGNORE, "*\n", wd)  # the token must not get into a commit
        files.write(path, json.dumps(content) + "\n", wd)
        self._discovery_is_old = False
