"""The proxy of a sandbox, asked directly."""

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from quintet.sandbox.network import proxy as proxy_module
from quintet.sandbox.network.outlets import ProxyThread
from quintet.sandbox.network.proxy import LONGEST_HEADER, SandboxProxy
from quintet.sandbox.network.rules import AllowList
from tests.eventually import eventually
from tests.sandbox.network.servers import answer, read_head, serving


class Asked:
    """A proxy that listens, and what it says to requests."""

    def __init__(self, folder: Path, domains: Sequence[str], names: dict[str, list[str]]) -> None:
        self.resolved: list[str] = []
        self.names = names
        self.proxy = SandboxProxy(AllowList.parse(domains), resolve=self.resolve)
        self.path = str(folder / "proxy")

    async def resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(f"{host}:{port}")
        found = self.names[host]
        return [found.pop(0)] if len(found) > 1 else found

    def connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(30)
        made.connect(self.path)
        return made

    def say(self, *parts: bytes) -> bytes:
        """Send something and read all that comes back."""
        with self.connect() as made:
            for part in parts:
                made.sendall(part)
            return b"".join(iter(lambda: _receive(made), b""))

    @property
    def refused(self) -> dict[str, int]:
        return {f"{one.host}:{one.port}": one.times for one in self.proxy.refused}


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


@contextmanager
def asked(folder: Path, *domains: str, **names: list[str]) -> Iterator[Asked]:
    made, thread = Asked(folder, domains, {name.replace("_", "."): one for name, one in names.items()}), ProxyThread()
    thread.listen(folder, made.proxy)
    try:
        yield made
    finally:
        thread.stop()


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


def get(url: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {url} HTTP/1.1", *headers, "", ""]).encode()


def socks(host: str | bytes, port: int, kind: int = 3, command: int = 1) -> bytes:
    name = host.encode() if isinstance(host, str) else host
    body = bytes([len(name)]) + name if kind == 3 else name
    return b"\x05\x01\x00" + bytes([5, command, 0, kind]) + body + struct.pack("!H", port)


def test_a_tunnel_leads_to_an_allowed_server(tmp_path: Path) -> None:
    with serving() as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        said = made.say(connect(f"127.0.0.1:{port}") + b"GET / HTTP/1.1\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert made.refused == {}


def test_a_plain_request_reaches_its_server_as_that_expects_it(tmp_path: Path) -> None:
    with serving() as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        said = made.say(get(f"http://127.0.0.1:{port}/a?b=c#d", "Accept: x", "Proxy-Connection: keep-alive"))
        assert b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: x\r\nConnection: close\r\n\r\n" % port in said


def test_a_name_is_resolved_by_the_proxy_and_by_socks_too(tmp_path: Path) -> None:
    with serving() as port, asked(tmp_path, f"a.test:{port}", f"127.0.0.1:{port}", a_test=["127.0.0.1"]) as made:
        assert b"200 OK" in made.say(get(f"http://A.test.:{port}/"))
        assert made.say(socks("a.test", port) + b"GET / HTTP/1.1\r\n\r\n").startswith(b"\x05\x00\x05\x00")
        assert b"200 OK" in made.say(socks(bytes([127, 0, 0, 1]), port, kind=1) + b"GET / HTTP/1.1\r\n\r\n")
        assert made.resolved == [f"a.test:{port}"] * 2


@pytest.mark.parametrize("target", ["evil.test:443", "127.0.0.1:1", "[::1]:443", "[::ffff:127.0.0.1]:1", "127.1:443"])
def test_a_host_that_is_not_allowed_is_refused_and_counted(tmp_path: Path, target: str) -> None:
    with asked(tmp_path, "good.test") as made:
        for _ in range(3):
            assert made.say(connect(target)).startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert list(made.refused.values()) == [3]
        assert made.resolved == []


def test_a_name_with_data_in_it_is_not_resolved(tmp_path: Path) -> None:
    """Finding 20's neighbour: what is refused does not leave the machine as a question to a name server either."""
    with asked(tmp_path, "good.test") as made:
        made.say(connect("c2VjcmV0.evil.test:443"))
        made.say(socks("c2VjcmV0.evil.test", 443))
        made.say(get("http://c2VjcmV0.evil.test/"))
        assert made.refused == {"c2vjcmv0.evil.test:443": 2, "c2vjcmv0.evil.test:80": 1}
        assert made.resolved == []


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fd00::1", "::ffff:10.0.0.1"])
def test_an_allowed_name_with_a_private_address_is_refused(tmp_path: Path, address: str) -> None:
    with asked(tmp_path, "good.test", good_test=[address]) as made:
        said = made.say(connect("good.test:443"))
        assert said.startswith(b"HTTP/1.1 403 ")
        assert b"is not a public one" in said
        entry = made.proxy.refused[0].allow
        assert AllowList.parse([entry]).rules[0].port == 443


def test_a_second_answer_of_the_name_server_changes_nothing(tmp_path: Path) -> None:
    """DNS rebinding: the connection goes to the address that was checked."""
    with (
        serving() as port,
        asked(tmp_path, "good.test", f"127.0.0.1:{port}", good_test=["127.0.0.1", "10.9.9.9"]) as made,
    ):
        assert b"200 OK" in made.say(get(f"http://good.test:{port}/"))
        assert made.resolved == [f"good.test:{port}"]
        assert made.say(get(f"http://good.test:{port}/")).startswith(b"HTTP/1.1 403 ")


def test_of_several_addresses_only_allowed_ones_are_tried(tmp_path: Path) -> None:
    class Both(Asked):
        async def resolve(self, host: str, port: int) -> list[str]:  # noqa: ARG002 - the hook's signature
            return ["10.9.9.9", "127.0.0.1"]

    with serving() as port:
        made, thread = Both(tmp_path, ["good.test", f"127.0.0.1:{port}"], {}), ProxyThread()
        thread.listen(tmp_path, made.proxy)
        assert b"200 OK" in made.say(get(f"http://good.test:{port}/"))
        thread.stop()


def test_a_host_header_says_nothing_about_where_a_request_goes(tmp_path: Path) -> None:
    with serving() as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        said = made.say(get(f"http://127.0.0.1:{port}/", "Host: evil.test"))
        assert b"evil.test" not in said
        assert b"Host: 127.0.0.1:%d\r\n" % port in said
        said = made.say(f"CONNECT evil.test:443 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert said.startswith(b"HTTP/1.1 403 ")


def test_a_second_request_on_a_connection_goes_nowhere(tmp_path: Path) -> None:
    heads: list[bytes] = []
    closed = threading.Event()

    def keep(connection: socket.socket) -> None:
        heads.append(read_head(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nend")
        connection.shutdown(socket.SHUT_WR)
        heads.extend(iter(lambda: connection.recv(4096), b""))
        closed.set()

    with serving(keep) as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        url = f"http://127.0.0.1:{port}/"
        assert made.say(get(url) + get("http://evil.test/", "Host: evil.test")).endswith(b"end")
        assert closed.wait(30)
        assert len(heads) == 1
        assert b"evil" not in heads[0]


@pytest.mark.parametrize(
    ("request_head", "body"),
    [("Content-Length: 5", b"hello"), ("Transfer-Encoding: chunked", b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: v\r\n\r\n")],
)
def test_a_body_is_passed_on_whole(tmp_path: Path, request_head: str, body: bytes) -> None:
    def echo(connection: socket.socket) -> None:
        data = read_head(connection)
        while not data.endswith(body):
            data += connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\ngot it")

    with serving(echo) as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        head = f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\n{request_head}\r\n\r\n".encode()
        assert made.say(head, body).endswith(b"got it")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET https://good.test/ HTTP/1.1\r\n\r\n",
        b"GET http://user@good.test/ HTTP/1.1\r\n\r\n",
        b"CONNECT good.test HTTP/1.1\r\n\r\n",
        b"CONNECT good.test:99999 HTTP/1.1\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET http://good.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://good.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET http://good.test/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET http://good.test/ HTTP/1.1\r\nA: b\nHost: evil.test\r\n\r\n",
        b"GET http://good.test/ HTTP/1.1\r\n folded\r\n\r\n",
    ],
)
def test_what_is_no_request_to_a_proxy_is_refused(tmp_path: Path, sent: bytes) -> None:
    with asked(tmp_path, "good.test") as made:
        assert made.say(sent).startswith(b"HTTP/1.1 400 ")
        assert made.resolved == []


@pytest.mark.parametrize("start", [b"GET http://a.test/ HTTP/1.1\r\nX: ", b"A", b"\r\n"])
def test_a_header_without_end_is_cut_off(tmp_path: Path, start: bytes) -> None:
    with asked(tmp_path, "good.test") as made, made.connect() as connection:
        sent = 0
        with pytest.raises(OSError, match=r"Broken pipe|reset"):  # noqa: PT012 - it may take some
            connection.sendall(start)
            while sent < 100 * LONGEST_HEADER:
                sent += connection.send(b"x" * 4096)
        assert made.refused == {}


def test_a_silent_connection_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "HEADER_SECONDS", 0.05)
    with asked(tmp_path, "good.test") as made:
        assert made.say(b"CONNECT good") == b""
        assert made.say(b"\x05\x01") == b""


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (socks("evil.test", 80), 2),
        (socks(bytes([10, 0, 0, 1]), 80, kind=1), 2),
        (socks(bytes(15) + b"\1", 80, kind=4), 2),
        (socks("127.1", 80), 2),
        (socks("good.test", 80, command=3), 7),
        (socks(b"", 80, kind=9), 8),
    ],
)
def test_socks_gets_no_further(tmp_path: Path, sent: bytes, code: int) -> None:
    with asked(tmp_path, "good.test") as made:
        assert made.say(sent)[:4] == bytes([5, 0, 5, code])


def test_a_server_that_is_down_is_told_apart_from_one_that_is_refused(tmp_path: Path) -> None:
    with serving() as port:
        pass
    with asked(tmp_path, f"127.0.0.1:{port}") as made:
        assert made.say(connect(f"127.0.0.1:{port}")).startswith(b"HTTP/1.1 502 ")
        assert made.say(socks(bytes([127, 0, 0, 1]), port, kind=1))[3] == 4
        assert made.refused == {}


def test_an_answer_arrives_as_it_is_written(tmp_path: Path) -> None:
    """The server writes the next part only when the client has the one before: a proxy that buffers would hang."""
    next_part = threading.Semaphore(0)

    def stream(connection: socket.socket) -> None:
        read_head(connection)
        for number in range(3):
            connection.sendall(b"part %d\n" % number)
            assert next_part.acquire(timeout=30)

    with serving(stream) as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        for sent in (get(f"http://127.0.0.1:{port}/"), connect(f"127.0.0.1:{port}") + b"x\r\n\r\n"):
            with made.connect() as connection, connection.makefile("rb") as lines:
                connection.sendall(sent)
                for number in range(3):
                    assert b"part %d\n" % number in iter(lines.readline, b"")
                    next_part.release()


def test_only_so_many_connections_are_kept_and_the_oldest_silent_one_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_module, "MOST_CONNECTIONS", 3)
    with serving(read_head) as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        opened = [made.connect() for _ in range(3)]
        for connection in opened:
            connection.sendall(connect(f"127.0.0.1:{port}"))
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        assert made.say(connect("evil.test:1")).startswith(b"HTTP/1.1 403 ")
        assert opened[0].recv(1) == b"", "it was silent for longest"
        opened[2].sendall(b"x")
        for connection in opened:
            connection.close()


def test_only_so_many_refused_hosts_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "MOST_REFUSED", 2)
    with asked(tmp_path, "good.test") as made:
        for name in ("a.test", "b.test", "c.test", "a.test"):
            assert made.say(connect(f"{name}:443")).startswith(b"HTTP/1.1 403 ")
        assert made.refused == {"a.test:443": 2, "b.test:443": 1}


def test_a_closed_proxy_ends_its_connections(tmp_path: Path) -> None:
    with serving(read_head) as port:
        with asked(tmp_path, f"127.0.0.1:{port}") as made:
            connection = made.connect()
            connection.sendall(connect(f"127.0.0.1:{port}"))
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        assert eventually(lambda: _receive(connection) == b"")
        connection.close()


def test_the_answer_of_a_server_is_whole(tmp_path: Path) -> None:
    with serving(answer) as port, asked(tmp_path, f"127.0.0.1:{port}") as made:
        assert b"X: %s\r\n" % (b"y" * 20_000) in made.say(get(f"http://127.0.0.1:{port}/", f"X: {'y' * 20_000}"))
