"""The listening socket and the uvicorn server on it, for all servers of Quintet."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import uvicorn
from fastapi import FastAPI

from quintet.errors import ServerError
from quintet.server.http.limits import LONGEST_HEAD, LimitedProtocol, reserve_descriptors

_BACKLOG: Final = 1024
"""connections that wait to be taken; where there is no room, a client tries again after a second"""
_TAKEN_AT_ONCE: Final = 64
"""fewer than the server keeps, so that a client's request is read before others have pushed its connection out"""


def bind(host: str, port: int, *, listening: bool = True) -> socket.socket:
    """A listening socket. The protocol is named so that asyncio sets TCP_NODELAY; without it a request takes 44 ms."""
    with _explaining(host, port), ExitStack() as opened:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = opened.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        if listening:
            listener.listen(_BACKLOG)
        opened.pop_all()
    return listener


def listen(listener: socket.socket, host: str, port: int) -> None:
    """Let a bound socket take connections."""
    with _explaining(host, port):
        listener.listen(_BACKLOG)


@contextmanager
def _explaining(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ServerError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None


class QuintetServer(uvicorn.Server):
    """uvicorn, but the event streams end first: it would wait for them."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_BACKLOG)  # asyncio has one number for those that wait and those that it takes at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.app
        if isinstance(app, FastAPI):
            app.state.sessions.events.close()
        await super().shutdown(sockets)


def make_server(app: FastAPI) -> QuintetServer:
    """A uvicorn server that logs nothing: an access log would hold prompts."""
    reserve_descriptors()
    return QuintetServer(
        uvicorn.Config(
            app,
            http=LimitedProtocol,
            backlog=_TAKEN_AT_ONCE,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=LONGEST_HEAD,
        )
    )
