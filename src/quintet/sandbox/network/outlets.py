"""The outlets of sandboxes: each a proxy on a Unix socket that is bound in, and the command that leads to it inside."""

import asyncio
import json
import os
import resource
import socket
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.sandbox.mounts import Access, Mount
from quintet.sandbox.network.proxy import LONGEST_HEADER, HostRefusal, SandboxProxy
from quintet.sandbox.network.rules import AllowList, entry_for

KEEP, NONE, ALLOW = "keep", "none", "allow"
"""what a sandbox can have of the network: all of the machine's, nothing, or the hosts of an allow-list"""
_SOCKET: Final = "proxy"
_RUN: Final = Path("/run")
_INSIDE: Final = _RUN / "quintet"
_FORWARDER: Final = Path(__file__).with_name("forwarder.py")
_DESCRIPTORS: Final = 4096
_SECONDS: Final = 10.0
_UNIX_SOCKETS: Final = Path("/proc/net/unix")
_LISTENS: Final = 0x10000
_COVERED: Final = (_RUN, Path("/var/run"), Path("/tmp"), Path("/var/tmp"), Path("/dev"), Path("/proc"))  # noqa: S108
"""where a sandbox has something of its own in place of what the machine has"""


def network_mounts(network: str) -> list[Mount]:
    """Hide the sockets by which services of the machine would reach the network for a program that cannot."""
    if network == KEEP:
        return []
    fresh = [Mount(_RUN, Access.FRESH)] if _RUN.is_dir() else []
    return [*fresh, *(Mount(path, Access.HIDDEN, is_file=True) for path in _service_sockets())]


def _service_sockets() -> Iterator[Path]:
    """List the sockets outside of the usual folders at which some program listens."""
    try:
        lines = _UNIX_SOCKETS.read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    except OSError:
        return
    home = Path.home()
    for fields in (line.split(maxsplit=7) for line in lines):
        if len(fields) > 7 and fields[7].startswith("/") and int(fields[3], 16) & _LISTENS:  # noqa: PLR2004 - its path
            path = Path(os.path.realpath(fields[7]))
            if not any(path.is_relative_to(place) for place in (*_COVERED, home)) and path.is_socket():
                yield path


@dataclass(frozen=True)
class Outlet:
    """The way out of one sandbox."""

    folder: Path
    """holds the socket, and is shown inside as a whole: another server can then put a new socket there"""
    proxy: SandboxProxy

    @property
    def mounts(self) -> list[Mount]:
        """What the sandbox has to show beside everything else."""
        return [Mount(_INSIDE, Access.READ, self.folder)]

    @property
    def command(self) -> list[str]:
        """What stands before the command in the sandbox."""
        local = [entry_for(host, port) for host, port in self.proxy.allowed.local_servers]
        return [sys.executable, "-I", "-S", str(_FORWARDER), str(_INSIDE / _SOCKET), *local, "--"]

    @property
    def refused(self) -> list[HostRefusal]:
        """The hosts that were refused so far."""
        return self.proxy.refused


class ProxyThread:
    """The thread that serves all outlets of a process. It is started with the first outlet."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._servers: dict[SandboxProxy, asyncio.Server] = {}

    def listen(self, folder: Path, proxy: SandboxProxy) -> None:
        """Serve a proxy at the socket in a folder."""
        listener = _bind(folder)
        self._call(self._listen(listener, proxy))

    def forget(self, proxy: SandboxProxy) -> None:
        """Stop serving a proxy."""
        if self._loop is not None:
            self._call(self._forget(proxy))

    def stop(self) -> None:
        """End all connections and the thread."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._forget(*self._servers), loop).result(_SECONDS)
            loop.call_soon_threadsafe(loop.stop)

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        with self._lock:
            if self._loop is None:
                _raise_descriptor_limit()
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=(self._loop,), name="quintet-proxy", daemon=True).start()
            loop = self._loop
        asyncio.run_coroutine_threadsafe(work, loop).result(_SECONDS)

    async def _listen(self, listener: socket.socket, proxy: SandboxProxy) -> None:
        self._servers[proxy] = await asyncio.start_unix_server(proxy.serve, sock=listener, limit=LONGEST_HEADER)

    async def _forget(self, *proxies: SandboxProxy) -> None:
        for proxy in proxies:
            server = self._servers.pop(proxy, None)
            if server is not None:
                server.close()
                proxy.close()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def _bind(folder: Path) -> socket.socket:
    """Make the socket in a folder, whose path may be longer than that of a socket can be."""
    with suppress(FileNotFoundError):
        (folder / _SOCKET).unlink()
    listener = socket.socket(socket.AF_UNIX)
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{place}/{_SOCKET}")
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(place)
    return listener


def _raise_descriptor_limit() -> None:
    """Make room for the connections of agents beside what the process needs for itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass
class Outlets:
    """The outlets of one server, each in a folder. They work as long as some server has them open."""

    _thread: ProxyThread = field(default_factory=ProxyThread)
    _open: dict[Path, Outlet] = field(default_factory=dict)

    def open(self, folder: Path, domains: Sequence[str]) -> Outlet:
        """Open an outlet, and keep its rules for a later server."""
        allowed = AllowList.parse(domains)
        files.write(_rules_of(folder), json.dumps(list(domains)))
        return self._listen(folder, allowed)

    def reopen(self, folder: Path) -> None:
        """Open the outlet that an earlier server has made; nothing if there is none, or if it is open here."""
        if folder in self._open:
            return
        with suppress(OSError, ValueError):
            domains = json.loads(_rules_of(folder).read_text(encoding="utf-8"))
            self._listen(folder, AllowList.parse(domains))

    def refused(self, folder: Path) -> list[HostRefusal]:
        """List what an outlet has refused."""
        outlet = self._open.get(folder)
        return outlet.refused if outlet else []

    def close(self, folder: Path) -> None:
        """Close an outlet for good."""
        outlet = self._open.pop(folder, None)
        if outlet is not None:
            self._thread.forget(outlet.proxy)
        for path in (folder / _SOCKET, _rules_of(folder)):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()

    def stop(self) -> None:
        """Close all outlets until a later server opens them again."""
        self._open.clear()
        self._thread.stop()

    def _listen(self, folder: Path, allowed: AllowList) -> Outlet:
        outlet = Outlet(folder, SandboxProxy(allowed))
        files.make_folder(folder)
        self._thread.listen(folder, outlet.proxy)
        self._open[folder] = outlet
        return outlet


def _rules_of(folder: Path) -> Path:
    """The file with the rules of an outlet: beside its folder, because that one is shown inside."""
    return folder.with_name(f"{folder.name}.json")


@contextmanager
def open_outlet(network: str, domains: Sequence[str], folder: Path) -> Iterator[Outlet | None]:
    """Open the outlet of one command; None if its sandbox has all of the network or nothing.

    The folder is made for the outlet and removed with it. It must be out of reach from inside.
    """
    if network != ALLOW:
        yield None
        return
    outlets = Outlets()
    try:
        yield outlets.open(folder, domains)
    finally:
        outlets.close(folder)
        outlets.stop()
