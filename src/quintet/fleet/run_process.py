"""The process of a run, as its slot has to do with it: it hears it, speaks to it and ends it."""

import queue
import subprocess
import threading
from contextlib import suppress
from typing import Final

from quintet.fleet.messages import Message, read_message

CHILD_SECONDS: Final = 40.0
"""how long the process of a run may take to stop"""


def messages_of(child: "subprocess.Popen[bytes]") -> "queue.Queue[Message | None]":
    """What a process says, as it comes; None at its end."""
    messages: queue.Queue[Message | None] = queue.Queue()

    def read() -> None:
        for line in child.stdout or ():
            with suppress(ValueError):
                messages.put(read_message(line))
        messages.put(None)

    threading.Thread(target=read, daemon=True).start()
    return messages


def send(child: "subprocess.Popen[bytes]", data: bytes) -> None:
    """Say something to a process; one that has ended hears nothing."""
    with suppress(BrokenPipeError):
        if child.stdin:
            child.stdin.write(data)
            child.stdin.flush()


def end_process(child: "subprocess.Popen[bytes]") -> None:
    """Stop the process of a run, which saves its state and ends its terminals; kill it where it takes too long."""
    if child.poll() is None:
        child.terminate()
    try:
        child.wait(CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
