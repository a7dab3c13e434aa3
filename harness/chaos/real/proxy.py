"""A proxy between a run and its server that can be slow, refuse, fail, or break off in the middle."""

import http.client
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

SLOW_SECONDS: Final = 2.0
_PASSED_ON: Final = ("Content-Type", "Authorization")


class Proxy:
    """Passes requests on to a server; the next few of them with a fault."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self._fault, self._left = "", 0
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        serve = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serve.start()

    def fail(self, fault: str, requests: int) -> None:
        """Have the next requests meet a fault."""
        with self._lock:
            self._fault, self._left = fault, requests

    def next_fault(self) -> str:
        with self._lock:
            self._left -= 1
            return self._fault if self._left >= 0 else ""

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """The server's own answer."""
        connection = http.client.HTTPConnection(self._target, timeout=120)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed in the middle of a request is what this is about."""


class _Handler(BaseHTTPRequestHandler):
    owner: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nobody reads it."""

    def do_GET(self) -> None:
        self._pass_on("GET")

    def do_POST(self) -> None:
        self._pass_on("POST")

    def do_DELETE(self) -> None:
        self._pass_on("DELETE")

    def _pass_on(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: self.headers[name] for name in _PASSED_ON if self.headers[name]}
        fault = self.owner.next_fault()
        if fault == "refuses":
            self._break_off()
            return
        if fault == "500":
            self._send(500, b'{"detail": "a fault"}')
            return
        try:
            code, answer = self.owner.ask(method, self.path, body, headers)
        except (OSError, http.client.HTTPException):
            self._break_off()
            return
        if fault == "dropped":
            self._break_off()
            return
        if fault == "slow":
            time.sleep(SLOW_SECONDS)
        self._send(code, answer, half=fault == "half an answer")

    def _send(self, code: int, answer: bytes, *, half: bool = False) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2] if half else answer)
        if half:
            self._break_off()

    def _break_off(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
