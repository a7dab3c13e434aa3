"""A scripted terminal server on loopback, with CAO's routes: what the loop sees of the world, and every order it gives.

Each terminal plays the turns that its role is given: it takes the prompt, is `processing` for a while, writes the
response file that the prompt names, and is `completed`. A turn can also misbehave.
"""

import json
import re
import shlex
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from quintet.roles import ROLES, Role

BY_PROFILE = {role.profile: role for role in ROLES}


@dataclass(frozen=True)
class Turn:
    """What an agent does with one prompt."""

    reply: str | None = None
    """the response file's text; None: it writes none"""
    work: float = 0.05
    """seconds at work before the file is written"""
    rest_after: float = 0.0
    """seconds at work after it"""
    asks: bool = False
    """asks for permission first, and goes on when it gets `y`"""
    seen: str = "processing"
    """the status while at work"""
    then: str = "completed"
    """the status afterwards"""
    raw: bytes | None = None
    """the response file's bytes, where they are no text"""
    screen: str = ""
    """the last answer on the screen"""
    act: Callable[[], None] = lambda: None
    """what it does before it writes the file"""


@dataclass
class Terminal:
    id: str
    role: Role
    provider: str
    session: str
    status: str = "idle"
    turns: int = 0
    answered: threading.Event = field(default_factory=threading.Event)
    screen: str = ""


@dataclass(frozen=True)
class Call:
    """One request as it came in."""

    method: str
    path: str
    params: dict[str, str]
    at: float


@dataclass
class Fault:
    """What to do instead of answering: a status code, or a dropped connection (0), after some seconds."""

    code: int = 500
    after: float = 0.0
    takes_effect: bool = False
    body: bytes = b'{"detail": "a fault"}'


class Stub:
    """The server's mind. Tests fill `script` and read `calls` and `prompts`."""

    def __init__(self) -> None:
        self.script: dict[Role, list[Turn]] = {}
        self.calls: list[Call] = []
        self.terminals: dict[str, Terminal] = {}
        self.roles: dict[str, Role] = {}
        """whose terminal each id was, also where it is gone"""
        self.first_status = "idle"
        """of a new terminal"""
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        """by "METHOD suffix-of-path": what goes wrong with the next such requests"""
        self.on_prompt: Callable[[Role, int, str], None] = lambda *_: None
        self.after_file: Callable[[Role, int], None] = lambda *_: None
        self.rested: list[float] = []
        """when an agent came to rest, turn by turn"""
        self.faulty: list[tuple[str, str]] = []
        """the requests that met a fault"""
        self.url = ""
        self._lock = threading.RLock()
        self._created = 0

    @property
    def prompts(self) -> list[tuple[Role, str]]:
        """Every prompt in the order of arrival: with its role, without renamings and answers to permission prompts."""
        with self._lock:
            inputs = [call for call in self.calls if call.path.endswith("/input")]
        pairs = [(self.roles[call.path.split("/")[2]], call.params["message"]) for call in inputs]
        return [(role, text) for role, text in pairs if not text.startswith("/rename") and text != "y"]

    def of(self, method: str, ending: str) -> list[Call]:
        with self._lock:
            return [call for call in self.calls if call.method == method and call.path.endswith(ending)]

    def fault_for(self, method: str, path: str) -> Fault | None:
        """The next fault that is planned for a request."""
        for key, faults in list(self.faults.items()):
            wanted, _, ending = key.partition(" ")
            if faults and method == wanted and path.endswith(ending):
                with self._lock:
                    self.faulty.append((method, path))
                return faults.pop(0)
        return None

    def handle(self, method: str, path: str, params: dict[str, str]) -> tuple[int, Any]:
        with self._lock:
            self.calls.append(Call(method, path, params, time.monotonic()))
        parts = path.strip("/").split("/")
        match method, parts:
            case "GET", ["health"]:
                return 200, {"status": "ok", "service": "cli-agent-orchestrator"}
            case "POST", ["sessions"]:
                return 201, self._create(params, params.get("session_name") or "stub-session")
            case "POST", ["sessions", name, "terminals"]:
                return 201, self._create(params, unquote(name))
            case _, ["terminals", terminal, *rest] if terminal in self.terminals:
                return self._terminal(method, self.terminals[terminal], rest, params)
        return 404, {"detail": f"Terminal '{parts[1] if len(parts) > 1 else ''}' not found"}

    def _create(self, params: dict[str, str], session: str) -> dict[str, Any]:
        with self._lock:
            self._created += 1
            role = BY_PROFILE[params["agent_profile"]]
            terminal = Terminal(f"{self._created:08x}", role, params["provider"], session, self.first_status)
            self.terminals[terminal.id] = terminal
            self.roles[terminal.id] = role
        return self._shown(terminal)

    @staticmethod
    def _shown(terminal: Terminal) -> dict[str, Any]:
        return {"id": terminal.id, "session_name": terminal.session, "status": terminal.status}

    def _terminal(self, method: str, terminal: Terminal, rest: list[str], params: dict[str, str]) -> tuple[int, Any]:
        match method, rest:
            case "GET", []:
                return 200, self._shown(terminal)
            case "GET", ["output"]:
                return 200, {"output": terminal.screen, "mode": "last"}
            case "POST", ["exit"]:
                terminal.status = "error"
                return 200, {"success": True}
            case "POST", ["input"]:
                self._input(terminal, params["message"])
                return 200, {"success": True}
        return 404, {"detail": "Not Found"}

    def _input(self, terminal: Terminal, message: str) -> None:
        if message.startswith("/rename "):
            return
        if message == "y":
            self.answer(terminal)
            return
        turns = self.script.get(terminal.role, [])
        number = terminal.turns
        terminal.turns += 1
        if turns:
            turn = turns[min(number, len(turns) - 1)]
            terminal.status = turn.seen
            self.play(terminal, turn, number, message)
        self.on_prompt(terminal.role, number, message)

    def answer(self, terminal: Terminal) -> None:
        """Let an agent continue that has asked for permission."""
        terminal.answered.set()

    def play(self, terminal: Terminal, turn: Turn, number: int, message: str) -> None:
        """Begin a turn, in a thread of its own."""
        threading.Thread(target=self._play, args=(terminal, turn, number, message), daemon=True).start()

    def _play(self, terminal: Terminal, turn: Turn, number: int, message: str) -> None:
        if turn.asks:
            terminal.status = "waiting_user_answer"
            terminal.answered.wait()
            terminal.answered.clear()
            terminal.status = turn.seen
        time.sleep(turn.work)
        turn.act()
        path = response_path(message)
        if path and turn.raw is not None:
            path.write_bytes(turn.raw)
        elif path and turn.reply is not None:
            path.write_text(turn.reply, encoding="utf-8")
        self.after_file(terminal.role, number)
        time.sleep(turn.rest_after)
        terminal.screen = turn.screen
        self.rested.append(time.monotonic())
        terminal.status = turn.then


def response_path(message: str) -> Path | None:
    """The response file that a prompt names, directly or in the file that it points to."""
    pointed = re.match(r"Read the file (.+?) from its first line", message)
    if pointed:
        message = Path(pointed[1]).read_text(encoding="utf-8")
    commands = re.findall(r"^cat > (.+) <<'\w+'$", message, re.MULTILINE)
    return Path(shlex.split(commands[-1])[0]) if commands else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.append(request)
        super().process_request(request, client_address)

    def server_close(self) -> None:
        """End like a killed process: open connections break."""
        super().server_close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed in the middle of a request is what some tests are about."""


@contextmanager
def serving(stub: Stub, port: int = 0) -> Iterator[Stub]:
    """Serve on a loopback port, by default a free one, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Tests read `calls` instead."""

        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            params = dict(parse_qsl(parts.query, keep_blank_values=True))
            if body:
                params |= json.loads(body)
            fault = stub.fault_for(method, parts.path)
            if not fault:
                code, answer = stub.handle(method, parts.path, params)
                self._send(code, json.dumps(answer).encode())
                return
            if fault.takes_effect:
                stub.handle(method, parts.path, params)
            time.sleep(fault.after)
            if fault.code:
                self._send(fault.code, fault.body)
            else:
                self.close_connection = True

        def _send(self, code: int, data: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = _Server(("127.0.0.1", port), Handler)
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
