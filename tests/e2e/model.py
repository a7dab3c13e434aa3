"""A model on loopback that answers the agent CLIs by script, so that they run without an account."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType, TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.e2e.exchange import Brain, Reply, Request
from tests.e2e.wire import Json, Wire
from tests.e2e.wire_chat import ChatCompletions
from tests.e2e.wire_gemini import GenerateContent
from tests.e2e.wire_messages import Messages
from tests.e2e.wire_responses import Responses

WIRES: Mapping[str, Wire] = MappingProxyType(
    {
        "/v1/responses": Responses(),
        "/v1/messages": Messages(),
        "/v1/chat/completions": ChatCompletions(),
        "/v1beta/models": GenerateContent(),
    }
)
TITLE = Reply.say("Scripted task")


class ScriptedModel:
    """`with ScriptedModel(brain) as model:` serves `model.url` until the block ends."""

    def __init__(self, brain: Brain, address: str = "127.0.0.1") -> None:
        self.brain = brain
        self.address = address
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._answered: list[tuple[Request, float]] = []
        self._faults: list[BaseException] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self._server.server_port}"

    @property
    def requests(self) -> list[Request]:
        """Every request so far, titles and other asides included, in order of arrival."""
        with self._lock:
            return list(self._requests)

    @property
    def turns(self) -> list[Request]:
        """The requests that begin a turn: a prompt and no tool's result yet. A retried one counts again."""
        return [request for request in self.requests if not request.is_aside and not request.results]

    @property
    def answered(self) -> list[tuple[Request, float]]:
        """The requests that got their whole answer, each with `time.monotonic()` of its last byte."""
        with self._lock:
            return list(self._answered)

    def note_answer(self, request: Request) -> None:
        with self._lock:
            self._answered.append((request, time.monotonic()))

    def answer(self, request: Request) -> Reply:
        with self._lock:
            self._requests.append(request)
        if request.is_aside:
            return TITLE
        # One at a time, so that a brain may keep counts without locks of its own.
        with self._server.one_brain:
            try:
                return self.brain(request)
            except Exception as fault:  # noqa: BLE001 - the test's code: kept for the end of the block
                self._faults.append(fault)
                # 400, because the CLIs would try anything else again for minutes.
                return Reply.fail(400, f"the scripted brain failed: {fault!r}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._faults and error is None:
            raise self._faults[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # An agent may still hold a connection that waits for a slow reply.
    block_on_close = False

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__((model.address, 0), _Handler)
        self.model = model
        self.one_brain = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up in the middle of an answer is part of the game, not news."""


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Quiet: a test's output is for the test."""

    def do_HEAD(self) -> None:
        self._send_json(200, {})

    def do_GET(self) -> None:
        # Codex and Claude Code both ask for a list of models and do without one.
        self._send_json(200 if self.path.startswith("/v1/models") else 404, {"data": [], "models": []})

    def do_POST(self) -> None:
        arrived = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        wire = WIRES.get(path.rpartition("/")[0] if path.startswith("/v1beta/") else path)
        if wire is None:
            counts = path.endswith("/count_tokens")
            self._send_json(200 if counts else 404, {"input_tokens": len(body) // 4} if counts else {})
            return
        request = wire.read(path, json.loads(body), arrived)
        reply = self.server.model.answer(request)
        if self.server.model.stopped.wait(reply.delay):
            return
        if reply.status >= 400:
            self._send_json(reply.status, wire.error(reply), reply.headers)
        elif reply.cut and not request.body.get("stream"):
            self.close_connection = True  # Claude Code asks once more without a stream, and gets nothing at all
        elif (whole := wire.whole(request, reply)) is not None:
            self._send_json(200, whole)
            self.server.model.note_answer(request)
        else:
            self._stream(wire, request, reply)

    def _stream(self, wire: Wire, request: Request, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        for event in self._events(wire, request, reply):
            self.wfile.write(wire.frame(event))
            self.wfile.flush()
            if event.get("type", "delta").endswith("delta") and self.server.model.stopped.wait(reply.pace):
                return
        self.server.model.note_answer(request)

    def _events(self, wire: Wire, request: Request, reply: Reply) -> Iterator[Json]:
        events = list(wire.events(request, reply))
        return iter(events[: len(events) // 2] if reply.cut else events)

    def _send_json(self, status: int, body: Json, more: Mapping[str, str] = MappingProxyType({})) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
