"""Who may talk to the server. Asked before anything else, on every method and on the event stream."""

import ipaddress
import json
import secrets
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
LONGEST_BODY: Final = 32 * 1024 * 1024
"""bytes: 4 MB of text with every character escaped"""
_HEADERS: Final = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class Guard:
    """Refuses foreign Host and Origin headers (DNS rebinding, CSRF), and whoever lacks the token."""

    def __init__(self, app: ASGIApp, token: str = "", hosts: Iterable[str] = (), *, any_address: bool = False) -> None:
        self.app = app
        self._token = token.encode()
        self._hosts = {host.lower() for host in (*LOOPBACK, *hosts)}
        self._any_address = any_address
        """a name can be made to point here by anybody, an address cannot"""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
        refusal = self._refusal({name: value.decode("latin-1") for name, value in headers.items()})
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal is not None:
            await _refuse(send, *refusal)
        else:
            await self.app(scope, _bounded(receive), _hardened(send))

    def _refusal(self, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 400, "Invalid host header"
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "none")
        if (origin is not None and origin.lower() != f"http://{host.lower()}") or site not in ("none", "same-origin"):
            return 403, "Cross-origin request blocked"
        if self._token and not self._has_token(headers.get("authorization", "")):
            return 401, "A bearer token is needed"
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > LONGEST_BODY:
            return 413, "The body is too long"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "") if "@" not in host and "/" not in host else ""
        except ValueError:
            return False
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._any_address

    def _has_token(self, authorization: str) -> bool:
        kind, _, token = authorization.partition(" ")
        return kind.lower() == "bearer" and secrets.compare_digest(token.strip().encode("latin-1"), self._token)


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    challenge = [(b"www-authenticate", b"Bearer")] if status == 401 else []  # noqa: PLR2004
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *challenge, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})


def _bounded(receive: Receive) -> Receive:
    """A body without a length is cut off where it is too long; what is left of it is no JSON."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LONGEST_BODY:
            return {"type": "http.request", "body": b"", "more_body": False}
        return message

    return bounded


def _hardened(send: Send) -> Send:
    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *_HEADERS]
        await send(message)

    return hardened
