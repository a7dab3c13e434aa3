"""The proxy that a sandboxed program reaches other hosts through: HTTP CONNECT, plain HTTP and SOCKS5 on one socket.

It resolves names itself, and only those that are allowed: a name that is refused leaves this machine nowhere. A
connection goes to the very address that was checked, so that a second answer of the name server changes nothing.
"""

import asyncio
import ipaddress
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from quintet.sandbox.network.rules import Address, AllowList, entry_for, normalise_host, split_authority, unwrap

HEADER_SECONDS: Final = 20.0
CONNECT_SECONDS: Final = 30.0
LONGEST_HEADER: Final = 32_768
MOST_CONNECTIONS: Final = 64
"""of one sandbox at once; another one ends the one that was silent for longest"""
MOST_REFUSED: Final = 200
"""refused hosts of one sandbox that are told apart; names can be made up without end"""
_CHUNK: Final = 65_536
_LONGEST_SHOWN: Final = 100
_OF_THE_CONNECTION: Final = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"upgrade", b"te", b"host", b"proxy-authorization"}
)
"""headers that are not passed on; `host` is written anew, by the address that was checked"""
_SOCKS_REFUSED, _SOCKS_UNREACHABLE, _SOCKS_NO_COMMAND, _SOCKS_NO_ADDRESS = 2, 4, 7, 8

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class HostRefusedError(Exception):
    """The host may not be reached."""


class BadProxyRequestError(Exception):
    """The program sent something that is not a request to a proxy."""


@dataclass(frozen=True)
class HostRefusal:
    """A host that a program asked for in vain."""

    host: str
    port: int
    times: int
    allow: str
    """the entry of the allow-list that is missing"""


@dataclass(eq=False)
class _Connection:
    """One program's connection to the proxy."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: float = field(default_factory=time.monotonic)

    async def relay(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, length: int | None = None
    ) -> None:
        """Copy bytes as they come, all or so many of them."""
        while length is None or length > 0:
            data = await source.read(_CHUNK if length is None else min(_CHUNK, length))
            if not data:
                return
            self.used = time.monotonic()
            target.write(data)
            await target.drain()
            length = None if length is None else length - len(data)


async def resolve(host: str, port: int) -> list[str]:
    """Ask the machine's resolver for the addresses of a name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


@dataclass(eq=False)
class SandboxProxy:
    """The proxy of one sandbox, with its rules and what it has refused."""

    allowed: AllowList
    resolve: Resolve = resolve
    _refused: dict[tuple[str, int], HostRefusal] = field(default_factory=dict)
    _connections: set[_Connection] = field(default_factory=set)

    @property
    def refused(self) -> list[HostRefusal]:
        """What was refused so far; may be asked from any thread."""
        return list(self._refused.values())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        if len(self._connections) >= MOST_CONNECTIONS:
            min(self._connections, key=lambda one: one.used).writer.transport.abort()
        connection = _Connection(reader, writer)
        self._connections.add(connection)
        try:
            async with asyncio.timeout(HEADER_SECONDS) as limit:
                first = await reader.readexactly(1)
                if first == b"\x05":
                    await self._serve_socks(connection, limit)
                else:
                    await self._serve_http(connection, first, limit)
        except (OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # the connection broke, or was never one to a proxy
        finally:
            self._connections.discard(connection)
            writer.close()

    def close(self) -> None:
        """End all connections."""
        for connection in list(self._connections):
            connection.writer.transport.abort()

    async def _serve_http(self, connection: _Connection, first: bytes, limit: asyncio.Timeout) -> None:
        try:
            try:
                head = first + await connection.reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                raise BadProxyRequestError("the header is too long") from None
            request = _Request.parse(head)
            limit.reschedule(None)
            server = await self._connect(request.host, request.port)
        except BadProxyRequestError as error:
            await _answer(connection.writer, "400 Bad Request", str(error))
        except HostRefusedError as error:
            await _answer(connection.writer, "403 Forbidden", str(error))
        except (OSError, TimeoutError) as error:
            await _answer(connection.writer, "502 Bad Gateway", f"cannot be reached: {error}")
        else:
            if request.is_tunnel:
                connection.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _tunnel(connection, *server)
            else:
                await _exchange(connection, request, *server)

    async def _serve_socks(self, connection: _Connection, limit: asyncio.Timeout) -> None:
        reader, writer = connection.reader, connection.writer
        await reader.readexactly((await reader.readexactly(1))[0])  # the ways to log in: none is needed
        writer.write(b"\x05\x00")
        _, command, _, kind = await reader.readexactly(4)
        host = await _socks_host(reader, kind)
        (port,) = struct.unpack("!H", await reader.readexactly(2))
        if command != 1 or host is None:
            writer.write(_socks_answer(_SOCKS_NO_ADDRESS if host is None else _SOCKS_NO_COMMAND))
            return
        limit.reschedule(None)
        try:
            server = await self._connect(host, port)
        except HostRefusedError:
            writer.write(_socks_answer(_SOCKS_REFUSED))
        except (OSError, TimeoutError):
            writer.write(_socks_answer(_SOCKS_UNREACHABLE))
        else:
            writer.write(_socks_answer(0))
            await _tunnel(connection, *server)

    async def _connect(self, asked: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a host if the rules allow it."""
        try:
            host = normalise_host(asked)
        except ValueError:
            raise self._refuse("".join(filter(str.isprintable, asked))[:_LONGEST_SHOWN], port) from None
        if not self.allowed.allows(host, port):
            raise self._refuse(host, port)
        async with asyncio.timeout(CONNECT_SECONDS):
            found = [unwrap(ipaddress.ip_address(one)) for one in await self._addresses(host, port)]
            usable = [one for one in found if self.allowed.allows_address(one, port)]
            if not usable:
                raise self._refuse(host, port, found)
            failure: OSError = OSError("it has no address")
            for address in usable:
                try:
                    server = await asyncio.open_connection(str(address), port, limit=_CHUNK)
                except OSError as error:
                    failure = error
                    continue
                _keep_alive(server[1])
                return server
        raise failure

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        with suppress(ValueError):
            return [str(ipaddress.ip_address(host))]
        return [one.partition("%")[0] for one in await self.resolve(host, port)]

    def _refuse(self, host: str, port: int, addresses: Sequence[Address] = ()) -> HostRefusedError:
        """Count a refusal; the error names the entry that is missing."""
        entry = entry_for(str(addresses[0]) if addresses else host, port)
        known = self._refused.get((host, port))
        if known or len(self._refused) < MOST_REFUSED:
            times = known.times + 1 if known else 1
            self._refused[host, port] = HostRefusal(host, port, times, entry)
        why = f" (its address {addresses[0]} is not a public one)" if addresses else ""
        return HostRefusedError(f"{entry_for(host, port)} is not allowed{why}: the list of this sandbox lacks {entry}")


@dataclass(frozen=True)
class _Request:
    """The head of a request to a proxy."""

    host: str
    port: int
    is_tunnel: bool
    head: bytes = b""
    """what goes to the server of a plain request"""
    length: int | None = 0
    """of its body; None: it comes in chunks"""

    @classmethod
    def parse(cls, head: bytes) -> "_Request":
        line, _, rest = head.partition(b"\r\n")
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):  # noqa: PLR2004 - method, target, version
            raise BadProxyRequestError("the first line is not that of a request")
        method, target = words[0], words[1].decode("latin-1")
        try:
            if method == b"CONNECT":
                host, port = split_authority(target)
                if port is None:
                    raise BadProxyRequestError("CONNECT needs a port")
                return cls(host, port, is_tunnel=True)
            parts = urlsplit(target)
            if parts.scheme != "http" or "@" in parts.netloc or not parts.netloc:
                raise BadProxyRequestError("this is a proxy: it needs an http:// address, or CONNECT")
            host, given = split_authority(parts.netloc)
        except ValueError as error:
            raise BadProxyRequestError(str(error)) from None
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        passed, length = _read_headers(rest)
        lines = [method + b" " + path.encode("latin-1") + b" HTTP/1.1", b"Host: " + parts.netloc.encode("latin-1")]
        text = b"\r\n".join([*lines, *passed, b"Connection: close", b"", b""])
        return cls(host, given or 80, is_tunnel=False, head=text, length=length)


def _read_headers(text: bytes) -> tuple[list[bytes], int | None]:
    """Read the lines that are passed on, and the length of the body."""
    passed: list[bytes] = []
    lengths: set[bytes] = set()
    for line in text.removesuffix(b"\r\n\r\n").split(b"\r\n") if text.strip() else []:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or not name or name.strip() != name or b"\n" in line or b"\r" in line:
            raise BadProxyRequestError("a header is malformed")
        if name in (b"content-length", b"transfer-encoding"):
            lengths.add(value.strip().lower())
        if name not in _OF_THE_CONNECTION:
            passed.append(line)
    if not lengths:
        return passed, 0
    (length, *others) = lengths
    if others or not (length == b"chunked" or length.isdigit()):
        raise BadProxyRequestError("the length of the body is not clear")
    return passed, None if length == b"chunked" else int(length)


async def _tunnel(connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy both ways until the server has closed its side."""

    async def send() -> None:
        await connection.relay(connection.reader, writer)
        with suppress(OSError):
            writer.write_eof()

    await _until_answered(connection, send(), reader, writer)


async def _exchange(
    connection: _Connection, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Pass on one request with its body, and nothing after it: a second one could name another host."""

    async def send() -> None:
        writer.write(request.head)
        if request.length is None:
            await _copy_chunks(connection, writer)
        else:
            await connection.relay(connection.reader, writer, request.length)

    await _until_answered(connection, send(), reader, writer)


async def _until_answered(
    connection: _Connection,
    sending: Coroutine[Any, Any, None],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    task = asyncio.ensure_future(sending)
    try:
        await connection.relay(reader, connection.writer)
    finally:
        task.cancel()
        with suppress(OSError, EOFError, ValueError, asyncio.CancelledError):
            await task
        writer.close()


async def _copy_chunks(connection: _Connection, writer: asyncio.StreamWriter) -> None:
    """Pass on a body that comes in chunks."""
    size = -1
    while size != 0:
        line = await connection.reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        writer.write(line)
        await connection.relay(connection.reader, writer, size)
        if size:
            writer.write(await connection.reader.readexactly(2))
    while (line := await connection.reader.readuntil(b"\r\n")) != b"\r\n":
        writer.write(line)
    writer.write(b"\r\n")


async def _answer(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = f"Quintet: {text}\n".encode("ascii", "backslashreplace")
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode("ascii") + body)
    await writer.drain()


async def _socks_host(reader: asyncio.StreamReader, kind: int) -> str | None:
    match kind:
        case 1:
            return str(ipaddress.IPv4Address(await reader.readexactly(4)))
        case 3:
            name = await reader.readexactly((await reader.readexactly(1))[0])
            return name.decode("latin-1")
        case 4:
            return str(ipaddress.IPv6Address(await reader.readexactly(16)))
    return None


def _socks_answer(code: int) -> bytes:
    return struct.pack("!BBBB4sH", 5, code, 0, 1, bytes(4), 0)


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Notice a server that is gone although no byte flows: a connection may be silent for as long as it likes."""
    found = writer.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
