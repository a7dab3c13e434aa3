"""Servers on loopback that stand for hosts of the network."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


def read_head(connection: socket.socket) -> bytes:
    """Read the head of a request."""
    head = b""
    while b"\r\n\r\n" not in head and (data := connection.recv(4096)):
        head += data
    return head


def answer(connection: socket.socket) -> None:
    """Answer one request with its own head."""
    head = read_head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(head) + head)


@contextmanager
def serving(handle: Callable[[socket.socket], object] = answer, address: str = "127.0.0.1") -> Iterator[int]:
    """Serve connections at a free port, each in a thread."""
    listener = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)

    def take(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            handle(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=take, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listener:
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
