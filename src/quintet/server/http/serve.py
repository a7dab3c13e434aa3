"""The terminal server by itself: `quintet serve`."""

import ipaddress
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from quintet.errors import ServerError
from quintet.server.http.app import PageRoutes, create_app
from quintet.server.http.listen import bind, listen, make_server
from quintet.server.http.token_files import publish_token
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.session_manager import SessionManager

MakePages = Callable[[Callable[[], list[Path]]], PageRoutes]
"""from the directories that agents work in to the pages that show their runs"""
OPEN_PATHS: Final = frozenset({"/health"})
"""what needs no token: whether a server is there"""


class Served(NamedTuple):
    """How to reach a server that listens now."""

    url: str
    token: str
    """empty where none is needed"""
    token_file: Path | None
    """where the owner's commands find it; None where they do not"""


def serve(
    host: str,
    port: int,
    tell: Callable[[Served], None],
    make_pages: MakePages | None = None,
    *,
    no_token: bool = False,
) -> None:
    """Serve all sessions of this user until a signal comes; `tell` gets its address when it listens."""
    loopback = _is_loopback(host)
    token = _token(host, loopback=loopback, no_token=no_token)
    state_folder = StateFolder()
    managers: list[SessionManager] = []

    def make_sessions() -> SessionManager:
        managers.append(SessionManager(state_folder))
        return managers[-1]

    app = create_app(
        make_sessions,
        token=token,
        hosts=() if loopback else (host, socket.gethostname()),
        any_address=not loopback,
        pages=make_pages(lambda: managers[-1].directories() if managers else []) if make_pages else None,
        open_paths=OPEN_PATHS,
    )
    with ExitStack() as kept:
        kept.enter_context(_exit_on_sigterm())
        listener = kept.enter_context(bind(host, port, listening=False))
        address, number = listener.getsockname()[:2]
        # before it listens: a client that reaches it finds the token
        file = (
            kept.enter_context(publish_token(state_folder.root, address, number, token)) if token and loopback else None
        )
        listen(listener, host, number)
        shown = f"[{host}]" if ":" in host else host
        tell(Served(f"http://{shown}:{number}", token, file))
        make_server(app).run(sockets=[listener])


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Exit normally on SIGTERM, which uvicorn raises again after its shutdown: so that the token file is removed."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _token(host: str, *, loopback: bool, no_token: bool) -> str:
    given = os.environ.get("QUINTET_TOKEN", "").strip()
    if not loopback and not given:
        raise ServerError(f"--host {host}: other machines could reach this server; set QUINTET_TOKEN to a secret first")
    if no_token and given:
        raise ServerError("--no-token: QUINTET_TOKEN is set; leave one of the two out")
    return "" if no_token else given or secrets.token_urlsafe(32)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
