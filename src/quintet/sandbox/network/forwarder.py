"""The first program in a sandbox with an allow-list: it leads to the proxy outside, then becomes the agent's program.

It runs as a file, without the package around it: `python -I -S forwarder.py SOCKET [HOST:PORT ...] -- COMMAND`.
The command keeps the process, so that terminal, signals and exit code are its own; a child does the forwarding. Whoever
ends the child, or talks to the socket directly, gains nothing: the rules are applied outside.
"""

import os
import socket
import sys
import threading

_CHUNK = 65_536
_LONGEST_ANSWER = 4096


def main(arguments: list[str]) -> None:
    """Listen, leave a child behind that forwards, and become the command."""
    split = arguments.index("--")
    outside, local, command = arguments[0], arguments[1:split], arguments[split + 1 :]
    proxy = listen("127.0.0.1", 0)
    if proxy is None:
        sys.exit("quintet: the sandbox has no loopback interface")
    listeners = [(proxy, b"")]
    for server in local:
        host, _, port = server.rpartition(":")
        for address in ("127.0.0.1", "::1") if host == "localhost" else (host.strip("[]"),):
            listener = listen(address, int(port))
            if listener is not None:
                listeners.append((listener, f"CONNECT {server} HTTP/1.1\r\n\r\n".encode()))
    os.environ.update(proxy_variables(proxy.getsockname()[1]))
    if os.fork() == 0:
        forward_all(outside, listeners)
    for listener, _ in listeners:
        listener.close()
    try:
        os.execvp(command[0], command)  # noqa: S606 - the sandbox is around it
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


def listen(address: str, port: int) -> "socket.socket | None":
    """Listen on a port in the sandbox; None if it cannot be had there."""
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError:
        return None
    return listener


def proxy_variables(port: int) -> dict[str, str]:
    """The variables by which programs find the proxy.

    SOCKS is spoken at the same port, but not named in ALL_PROXY: Python's httpx refuses to start with a name that it
    needs another package for.
    """
    proxy, direct = f"http://127.0.0.1:{port}", "localhost,127.0.0.1,::1"
    named = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": direct}
    return {**named, **{name.lower(): value for name, value in named.items()}, "NODE_USE_ENV_PROXY": "1"}


def forward_all(outside: str, listeners: "list[tuple[socket.socket, bytes]]") -> None:
    """Forward what arrives at any listener, until the sandbox ends."""
    os.setsid()  # out of reach of the terminal's keys
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    accepting = [threading.Thread(target=accept, args=(outside, *one)) for one in listeners]
    for thread in accepting:
        thread.start()
    for thread in accepting:
        thread.join()
    os._exit(0)


def accept(outside: str, listener: socket.socket, greeting: bytes) -> None:
    """Take every connection to one port."""
    while True:
        try:
            client, _ = listener.accept()
            threading.Thread(target=forward, args=(outside, client, greeting), daemon=True).start()
        except (OSError, RuntimeError):  # too many connections at once: the others go on
            continue


def forward(outside: str, client: socket.socket, greeting: bytes) -> None:
    """Connect a client in the sandbox with the proxy; the greeting asks it for the server of a local port."""
    proxy = socket.socket(socket.AF_UNIX)
    with client, proxy:
        try:
            proxy.connect(outside)
            if greeting and not is_open(proxy, greeting):
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            return
        back = threading.Thread(target=copy, args=(proxy, client), daemon=True)
        back.start()
        copy(client, proxy)
        back.join()


def is_open(proxy: socket.socket, greeting: bytes) -> bool:
    """Ask the proxy for a server; byte by byte, because what follows the answer is the server's."""
    proxy.sendall(greeting)
    answer = b""
    while not answer.endswith(b"\r\n\r\n") and len(answer) < _LONGEST_ANSWER:
        byte = proxy.recv(1)
        if not byte:
            return False
        answer += byte
    return answer.startswith(b"HTTP/1.1 200 ")


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copy one direction of a connection as it comes, and pass its end on."""
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


if __name__ == "__main__":
    main(sys.argv[1:])
