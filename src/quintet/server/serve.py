"""The separate server: `quintet serve`."""

import ipaddress
import os
import socket
from collections.abc import Callable
from pathlib import Path

from quintet.errors import ServerError
from quintet.server.app import Pages, create_app
from quintet.server.hub import Hub
from quintet.server.listen import bind, make_server
from quintet.server.places import Places

MakePages = Callable[[Callable[[], list[Path]]], Pages]
"""from the directories that agents work in to the pages that show their runs"""


def serve(host: str, port: int, tell: Callable[[str], None], make_pages: MakePages | None = None) -> None:
    """Serve all sessions of this user until a signal comes; tells its address when it listens."""
    token = os.environ.get("QUINTET_TOKEN", "").strip()
    loopback = _is_loopback(host)
    if not loopback and not token:
        raise ServerError(f"--host {host}: other machines could reach this server; set QUINTET_TOKEN to a secret first")
    places = Places()
    hubs: list[Hub] = []

    def make_hub() -> Hub:
        hubs.append(Hub(places))
        return hubs[-1]

    app = create_app(
        make_hub,
        token=token,
        hosts=() if loopback else (host, socket.gethostname()),
        any_address=not loopback,
        pages=make_pages(lambda: hubs[-1].directories() if hubs else []) if make_pages else None,
    )
    listener = bind(host, port)
    shown = f"[{host}]" if ":" in host else host
    tell(f"http://{shown}:{listener.getsockname()[1]}")
    make_server(app).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
