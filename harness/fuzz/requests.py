"""What reaches the server: requests to every route of the real application, and bytes that are hardly HTTP."""

import asyncio
import json
import re
import socket
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from fastapi.routing import APIRoute
from hypothesis import strategies as st

from harness.fuzz.files import FOLDER
from harness.fuzz.hostile import any_text, as_bytes, json_objects, json_values, one_of, texts
from harness.fuzz.properties import holds
from quintet.server.events import EventLog
from quintet.server.http.app import create_app
from quintet.server.http.embedded import EmbeddedServer
from quintet.server.refusals import Conflict
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.session_manager import SessionManager
from quintet.server.terminal.terminal_spec import TerminalSpec
from quintet.watch.dashboard.routes import DashboardRoutes

TOKEN: Final = "secret"


class NoTerminals(SessionManager):
    """The real hub, but nothing is started: every example would cost a tmux server."""

    async def create_session(self, name: str, spec: TerminalSpec) -> AgentTerminal:
        raise Conflict(f"Session '{name}' of {spec.profile} is not started here")


@dataclass
class Answer:
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""


class Application:
    """The real application on an event loop of its own, asked in the way a server asks it."""

    def __init__(self) -> None:
        (FOLDER / "http").mkdir(exist_ok=True)
        state_folder = StateFolder(FOLDER / "q")
        self.app = create_app(
            lambda: NoTerminals(state_folder, ()), token=TOKEN, pages=DashboardRoutes(lambda: [FOLDER / "http"])
        )
        self.loop = asyncio.new_event_loop()
        self._life = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self._life.__aenter__())
        self.paths = sorted({route.path for route in self.app.routes if isinstance(route, APIRoute)})

    def ask(self, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> Answer:
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode("utf-8", "replace"), "query_string": query, "root_path": "",
            "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 9889),
        }  # fmt: skip
        parts = [body[: len(body) // 2], body[len(body) // 2 :]]
        answer = Answer()

        async def receive() -> dict[str, Any]:
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.headers = message["status"], list(message["headers"])
            else:
                answer.body += message.get("body", b"")

        async def whole() -> None:
            async with asyncio.timeout(60):
                await self.app(scope, receive, send)

        self.loop.run_until_complete(whole())
        return answer


@cache
def application() -> Application:
    return Application()


PATHS: Final = (
    "/health", "/sessions", "/sessions/{name}", "/sessions/{name}/terminals", "/terminals/{terminal_id}", "/events",
    "/terminals/{terminal_id}/input", "/terminals/{terminal_id}/key", "/terminals/{terminal_id}/exit", "/openapi.json",
    "/terminals/{terminal_id}/output", "/terminals/{terminal_id}/screen", "/terminals/{terminal_id}/working-directory",
    "/watch/runs", "/watch/runs/{run_id}", "/watch/runs/{run_id}/handoffs/{number}", "/watch/runs/{run_id}/diff",
    "/watch/runs/{run_id}/timeline", "/sessions/{name}/strays", "/sessions/{name}/stop", "/sessions/{name}/continue",
    "/", "/static/dashboard.js", "/queue", "/watch/queue", "/watch/queue/{task_id}",
)  # fmt: skip
_WORDS: Final = (
    "0123abcd", "cao-x", "x", "latest", "-1", "9" * 5000, "..", "%2e%2e", "%00", "%ff", "accept", "Enter", "full",
    "last",
    "scripted", "codex", "programmer", "system_analyst", "/tmp", "~nobody/x", "true", "false", "a" * 5000, "\0", "~\0",
)  # fmt: skip
_PARAMETERS: Final = (
    "provider", "agent_profile", "working_directory", "model", "args", "continues", "session_name", "defer_init",
    "message",
    "dispatch_id", "key", "mode", "follow",
)  # fmt: skip
_part = one_of(*_WORDS) | any_text
_paths = st.tuples(one_of(*PATHS), st.lists(_part, min_size=2, max_size=2)).map(
    lambda pair: re.sub(r"\{\w+\}", lambda _: pair[1].pop(0), pair[0])
)
_value = (_part | texts(size=2)).map(lambda text: text.encode("utf-8", "replace"))
_quoted = _value.map(lambda data: b"".join(b"%%%02x" % byte if byte in b"&=#% +" else bytes([byte]) for byte in data))
_query = st.lists(
    st.tuples(one_of(*_PARAMETERS).map(str.encode) | _quoted, _quoted | _value).map(b"=".join), max_size=5
).map(b"&".join)
_fine_query = st.lists(_quoted, min_size=4, max_size=4).map(
    lambda found: b"provider=scripted&agent_profile=programmer&args=%s&session_name=%s&key=%s&message=%s" % tuple(found)
)
_HEADERS: Final = (
    (b"host", b"127.0.0.1"), (b"host", b"localhost:1"), (b"host", b"evil.example"), (b"host", b"[::1"), (b"host",
    b"@/"),
    (b"authorization", b"Bearer secret"), (b"authorization", b"Bearer \xff\xfe"), (b"authorization", b"Basic x"),
    (b"origin", b"http://127.0.0.1"), (b"origin", b"null"), (b"sec-fetch-site", b"cross-site"), (b"upgrade",
    b"websocket"),
    (b"content-length", b"9" * 5000), (b"content-length", b"-1"), (b"content-length", b"\xb2"), (b"content-length",
    b"12"),
    (b"content-type", b"application/json"), (b"content-type", b"text/plain; charset=\xff"), (b"content-type",
    b"multipart/form-data"),
    (b"content-type", b"application/x-www-form-urlencoded"), (b"content-encoding", b"gzip"), (b"transfer-encoding",
    b"chunked"),
    (b"last-event-id", b"x-1"), (b"last-event-id", b"\xff-" + b"9" * 5000), (b"cookie", b"a=" * 500), (b"x" * 3000,
    b"y"),
)  # fmt: skip
_LET_IN: Final = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer secret")]
_other_headers = st.tuples(st.binary(min_size=1, max_size=9), st.binary(max_size=20))
_headers = st.lists(one_of(*_HEADERS) | _other_headers, max_size=4)
_FIELDS: Final = ("args", "env_vars", "description", "initial_message", "message", "dispatch_id")
_json = json_values(_WORDS, _FIELDS)
_body = as_bytes(json_objects(_FIELDS, _json) | _json)
_methods = one_of("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "", "\0", "get")


@holds("HTTP requests", st.tuples(_methods, _paths | any_text, _query | _fine_query, _headers, st.booleans(), _body))
def every_request_has_an_answer(found: Any) -> None:
    method, path, query, headers, let_in, body = found
    query += b"&follow=false"  # else the stream of events would never end
    if let_in:
        own = {name for name, _ in _LET_IN} | {b"origin", b"sec-fetch-site", b"upgrade"}
        headers = [*_LET_IN, (b"content-type", b"application/json"), *(pair for pair in headers if pair[0] not in own)]
    answer = application().ask(method, path, query, headers, body)
    assert 200 <= answer.status < 500, answer
    if not let_in and (b"authorization", b"Bearer secret") not in headers:
        open_paths = DashboardRoutes.open_paths
        assert answer.status >= 400 or path in open_paths, answer
    if (b"content-type", b"application/json") in answer.headers and method != "HEAD":
        json.loads(answer.body)


@cache
def real_server() -> EmbeddedServer:
    return EmbeddedServer(state_folder=StateFolder(FOLDER / "q")).start()


_LINES: Final = (
    b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/9.9\r\n", b"GET  /health\r\n", b"POST /sessions HTTP/1.1\r\n",
    b"\r\n",
    b"Host: 127.0.0.1\r\n", b"Host: \xff\r\n", b"Content-Length: 5\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Content-Length: " + b"9" * 5000 + b"\r\n", b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n",
    b"fffffffffffffffff\r\n",
    b"0\r\n\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n", b" folded: x\r\n", b"no colon\r\n",
    b"\0\0\0", b"\x16\x03\x01",
    b"GET " + b"/a" * 40_000 + b" HTTP/1.1\r\n", b"X: " + b"y" * 70_000 + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)  # fmt: skip


@holds("HTTP requests", st.lists(one_of(*_LINES) | st.binary(max_size=20), min_size=1, max_size=8).map(b"".join))
def bytes_that_are_hardly_http_do_no_harm(data: bytes) -> None:
    port = int(real_server().url.rpartition(":")[2])
    head = _exchange(port, data)
    assert not head.startswith(b"HTTP/1.1 5"), head
    word = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {real_server().token}\r\n\r\n"
    assert _exchange(port, word.encode()).startswith(b"HTTP/1.1 200")


def _exchange(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(4096)
        except ConnectionError:
            return b""


@cache
def _events() -> EventLog:
    events = EventLog()
    for number in range(5):
        events.add("status", terminal=str(number), text="\ud800\n\ndata: x")
    return events


_numbers = one_of("1", "5", "-1", "٣", "²", "9" * 5000, "1-2", "") | any_text


@holds("event stream", st.tuples(st.booleans(), _numbers))
def a_reader_may_come_back_with_any_id(found: Any) -> None:
    ours, number = found
    events = _events()
    last = f"{events.start_id}-{number}" if ours else number

    async def read() -> list[str]:
        async def snapshot() -> dict[str, Any]:
            return {}

        return [frame async for frame in events.stream(last, snapshot, follow=False)]

    frames = application().loop.run_until_complete(read())
    for frame in frames:
        frame.encode("utf-8")
        assert re.fullmatch(r"id: [0-9a-f]+-\d+\nevent: \w+\ndata: [^\n]*\n\n", frame)
