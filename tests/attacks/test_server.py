"""Users of the same machine, who can open connections to a run's server and bind its port, but have no token."""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
from fastapi import FastAPI

from quintet.server.http.dashboard_server import serve_dashboard
from quintet.server.state_folder import StateFolder
from quintet.setup.dashboard_control import ControlRoutes
from quintet.watch.dashboard import routes
from tests.eventually import eventually

RUN = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
from quintet.server.http.embedded import EmbeddedServer
with EmbeddedServer() as server:
    print(json.dumps({"url": server.url, "token": server.token}), flush=True)
    for line in sys.stdin:
        opened = [open("/dev/null") for _ in range(500)]  # what a run needs for its git commands, checks and journal
        print(len(opened), flush=True)
        for one in opened:
            one.close()
"""
MEGABYTE = 1024 * 1024


@dataclass
class Served:
    """A run's server in a process that may open 1,024 files, as is usual."""

    process: "subprocess.Popen[str]"
    url: str
    token: str

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=10)

    def get(self, path: str = "/sessions") -> int:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=20).status_code

    def memory(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def descriptors(self) -> int:
        return int(psutil.Process(self.process.pid).num_fds())

    def can_work(self) -> bool:
        """Whether the run can still open what it needs."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("work\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() == "500"


@contextmanager
def serve(tmp_path: Path) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout
        try:
            yield Served(process, **json.loads(process.stdout.readline()))
        finally:
            process.kill()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    with serve(tmp_path) as made:
        yield made


def test_a_thousand_idle_connections_leave_the_run_unharmed(served: Served) -> None:
    """Finding 13: the run shares 1,024 descriptors with its server, and died without a report."""
    with ExitStack() as opened:
        for _ in range(1100):
            opened.enter_context(served.connect())
        assert served.get() == 200
        assert served.descriptors() < 512
        assert served.can_work()


def test_unfinished_request_lines_cost_little_memory(served: Served) -> None:
    """Finding 13: 60 request lines of 12 MB took 630 MB."""
    before = served.memory()
    part = b"x" * MEGABYTE
    with ExitStack() as opened:
        for _ in range(60):
            stranger = opened.enter_context(served.connect())
            try:
                stranger.sendall(b"GET /?")
                for _ in range(12):
                    stranger.sendall(part)
            except OSError:  # the server has closed it
                continue
        assert served.get() == 200
        assert served.memory() - before < 150 * MEGABYTE
        assert served.can_work()


def test_millions_of_headers_cost_little_memory(served: Served) -> None:
    """A variant of finding 13: one request with four million headers took over a gigabyte, and nine seconds."""
    before = served.memory()
    with served.connect() as stranger:
        with suppress(OSError):  # the server has closed it
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 4_000_000 + b"\r\n")
        assert served.get() == 200
        assert served.memory() - before < 150 * MEGABYTE


@pytest.mark.attacks
def test_connections_that_read_nothing_are_closed_too(served: Served) -> None:
    """A variant of finding 13: answers without a token that nobody reads must not keep a connection."""
    with ExitStack() as opened:
        for _ in range(1100):
            stranger = opened.enter_context(socket.socket())
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            stranger.settimeout(10)
            stranger.connect(served.address)
            stranger.sendall(b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        assert served.get() == 200
        assert served.descriptors() < 512
        assert served.can_work()


@pytest.mark.attacks
def test_bodies_without_a_token_are_not_waited_for(served: Served) -> None:
    """A variant of finding 13: a head that promises a body, and the body never comes."""
    head = b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n{"
    before = served.memory()
    with ExitStack() as opened:
        for _ in range(1100):
            opened.enter_context(served.connect()).sendall(head)
        assert served.get() == 200
        assert served.descriptors() < 512
        assert served.memory() - before < 100 * MEGABYTE


@pytest.mark.attacks
def test_headers_that_come_byte_by_byte_have_a_time_limit(served: Served) -> None:
    """A variant of finding 13: a slow head, for which uvicorn waits as long as it takes."""
    with served.connect() as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")

        def is_closed() -> bool:
            try:
                stranger.sendall(b"X: y\r\n")
            except OSError:
                return True
            return False

        assert eventually(is_closed, "the server closes it", deadline=30)


def test_many_viewers_and_a_long_stream_stay_connected_through_a_flood(served: Served) -> None:
    """The honest neighbour of finding 13: 50 pages, each with its event stream, while a stranger connects."""
    headers = f"Host: localhost\r\nAuthorization: Bearer {served.token}\r\n"
    with ExitStack() as opened:
        viewers = [opened.enter_context(served.connect()) for _ in range(50)]
        for viewer in viewers:
            viewer.sendall(f"GET /events HTTP/1.1\r\n{headers}\r\n".encode())
        assert all(b"200 OK" in viewer.recv(4096) for viewer in viewers)
        for _ in range(600):
            opened.enter_context(served.connect())
        assert served.get() == 200
        for viewer in viewers:
            viewer.setblocking(False)
        assert all(is_open(viewer) for viewer in viewers)


def is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_a_long_message_in_the_request_line_still_arrives(served: Served) -> None:
    """The honest neighbour of finding 13: CAO's clients send messages of megabytes there."""
    headers = f"Host: localhost\r\nAuthorization: Bearer {served.token}\r\n\r\n".encode()
    with served.connect() as client:
        client.settimeout(60)
        client.sendall(b"POST /terminals/deadbeef/input?message=" + b"%78" * 3_900_000 + b" HTTP/1.1\r\n" + headers)
        assert client.recv(100).startswith(b"HTTP/1.1 404")


def start_dashboard(patch: pytest.MonkeyPatch, root: Path) -> tuple[FastAPI, str]:
    """Start the dashboard with the right to act, and stop it at once; its application, and the token it has printed."""
    apps: list[FastAPI] = []
    urls: list[str] = []

    class Stopped:
        def run(self, sockets: list[socket.socket]) -> None:
            for one in sockets:
                one.close()

    def make_server(app: FastAPI) -> Stopped:
        apps.append(app)
        return Stopped()

    patch.setattr("quintet.server.http.dashboard_server.make_server", make_server)
    serve_dashboard(ControlRoutes(list), 0, urls.append, StateFolder(root), can_act=True)
    return apps[0], urls[0].partition("#token=")[2]


def ask(app: FastAPI, token: str, path: str, method: str = "GET") -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.request(method, path, headers={"Authorization": f"Bearer {token}"})

    return asyncio.run(send())


def test_a_token_of_the_dashboard_is_worth_nothing_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 14: another user takes the port while the dashboard is down, and gets the token from an old link."""
    first, stolen = start_dashboard(monkeypatch, tmp_path)
    assert ask(first, stolen, "/watch/runs").status_code == 200
    again, token = start_dashboard(monkeypatch, tmp_path)
    assert ask(again, stolen, "/watch/runs").status_code == 401
    refused = ask(again, stolen, "/control/runs/x/approve", "POST")
    assert refused.status_code == 401
    assert len(refused.json()["detail"].splitlines()) == 1
    assert ask(again, token, "/watch/runs").status_code == 200
    assert not list(tmp_path.rglob("*token*")), "nothing is left to be found"


def test_the_page_keeps_its_token_in_its_tab_alone() -> None:
    """A variant of finding 14: what the browser keeps for all tabs, the next page at this port can read."""
    for path in ("/static/common.js", "/static/dashboard.js", "/static/queue.js"):
        script = routes._file(routes._FILES[path]).body
        assert b"localStorage" not in bytes(script), path
    common = bytes(routes._file(routes._FILES["/static/common.js"]).body).decode()
    assert 'sessionStorage.setItem("quintet-token"' in common
    assert "history.replaceState" in common, "and takes it out of the address"
