"""Who may use the server: checked before anything else, for every request and the event stream."""

import ipaddress
import json
import secrets
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quintet.server.http.limits import ADMITTED

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
LONGEST_BODY: Final = 32 * 1024 * 1024
"""bytes: 4 MB of text with every character escaped"""
TOKEN_NEEDED: Final = (
    "A bearer token is needed: Quintet's commands find it where the same user has started the server; elsewhere set "
    "QUINTET_TOKEN, or start that server with --no-token"
)
CONTROL: Final = "/control/"
"""how the paths begin that change something on a read-only server"""
CONTROL_NEEDED: Final = "This page can only look: open the address that the command dashboard --control prints"
_MOST_DIGITS: Final = 18
_ONCE: Final = ("host", "origin", "authorization", "sec-fetch-site")
"""headers that must not come twice: a proxy could read another one than we do"""
_HEADERS: Final = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class AccessGuard:
    """Refuses foreign Host and Origin headers (DNS rebinding, CSRF), and requests without the token."""

    def __init__(
        self,
        app: ASGIApp,
        token: str = "",
        hosts: Iterable[str] = (),
        *,
        any_address: bool = False,
        open_paths: frozenset[str] = frozenset(),
        read_only: bool = False,
        control_token: str = "",
    ) -> None:
        self.app = app
        self._token = token.encode()
        self._control_token = control_token.encode()
        """also a token for reading, and the only one with which a read-only server takes what begins with CONTROL"""
        self._hosts = {host.lower() for host in (*LOOPBACK, *hosts)}
        self._any_address = any_address
        """whether any address is right as a Host: anybody can make a name point here, but no address"""
        self._open_paths = open_paths
        """what needs no token: for instance a page's own files, which a browser fetches before the page can send one"""
        self._read_only = read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        reading = scope.get("method") in ("GET", "HEAD")
        refusal = self._refusal(headers, is_open=reading and scope["path"] in self._open_paths)
        if refusal is None and self._read_only and not reading:
            refusal = self._refusal_to_act(scope["path"], dict(headers).get("authorization", ""))
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal is not None:
            await _refuse(send, *refusal)
        else:
            # to look at the page's own files is not enough: anybody may
            scope[ADMITTED] = not self._token or self._has_token(dict(headers).get("authorization", ""))
            await self.app(scope, _bounded(receive), _hardened(send))

    def _refusal(self, sent: list[tuple[str, str]], *, is_open: bool) -> tuple[int, str] | None:
        headers = dict(sent)
        names = [name for name, _ in sent]
        if any(names.count(name) > 1 for name in _ONCE):
            return 400, f"Only one of each: {', '.join(_ONCE)}"
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 400, "Invalid host header"
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "none")
        if (origin is not None and origin.lower() != f"http://{host.lower()}") or site not in ("none", "same-origin"):
            return 403, "Cross-origin request blocked"
        if self._token and not is_open and not self._has_token(headers.get("authorization", "")):
            return 401, TOKEN_NEEDED
        if "websocket" in headers.get("upgrade", "").lower():
            return 400, "There is no web socket here"
        length = headers.get("content-length", "0")
        if length.isdecimal() and (len(length) > _MOST_DIGITS or int(length) > LONGEST_BODY):
            return 413, "The body is too long"
        return None

    def _refusal_to_act(self, path: str, authorization: str) -> tuple[int, str] | None:
        """Why a read-only server does not take a request that changes something."""
        if not self._control_token or not path.startswith(CONTROL):
            return 405, "This server is read-only"
        return None if _is_token(authorization, self._control_token) else (401, CONTROL_NEEDED)

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
        return any(_is_token(authorization, token) for token in (self._token, self._control_token) if token)


def _is_token(authorization: str, wanted: bytes) -> bool:
    kind, _, token = authorization.partition(" ")
    return kind.lower() == "bearer" and secrets.compare_digest(token.strip().encode("latin-1"), wanted)


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    challenge = [(b"www-authenticate", b"Bearer")] if status == 401 else []  # noqa: PLR2004
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *challenge, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})


def _bounded(receive: Receive) -> Receive:
    """Cut off a body without a length where it is too long; the rest of it is no JSON."""
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
