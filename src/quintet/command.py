"""Run a command of the user's or of a tool, bounded in time and output, and never left behind."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet.supervise import COMMAND, command_before

Shield = Callable[[], AbstractContextManager[None]]
LONGEST_OUTPUT: Final = 1_000_000
"""bytes that are kept, half from the beginning and half from the end"""
MOST_OUTPUT: Final = 1_000_000_000
"""bytes after which a command is ended: one that prints for ever would fill the disk"""
_LOOK_SECONDS: Final = 0.25
NOT_FOUND: Final = 127
TIMED_OUT: Final = 124
TOO_MUCH: Final = 153
_SUPERVISOR_SECONDS: Final = 10.0
"""how long a supervisor may take to end what a command has left"""
_ENDED: Final = 1_000
"""no exit code of a process"""


@dataclass(frozen=True)
class Outcome:
    """How a command ended; the exit codes for "not found", "timed out" and "too much output" are the shell's."""

    exit_code: int
    output: str

    @property
    def last_line(self) -> str:
        lines = self.output.strip().splitlines()
        return lines[-1] if lines else f"exit code {self.exit_code}"


def run(
    command: str | Sequence[str],
    cwd: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    shield: Shield = contextlib.nullcontext,
    *,
    given: bytes = b"",
    supervised: bool = False,
    inherits: bool = True,
) -> Outcome:
    """Run a shell line (a text) or a program (a list) in a process group of its own, and wait for it.

    It reads what is `given` from its standard input. The shield keeps signals away from the start: one in its middle
    would leave a process that nobody ends. `supervised`: all that it starts ends with it, also a daemon. Unless it
    `inherits` the environment of this process, it has `env` alone.
    """
    if supervised:
        words = ("/bin/sh", "-c", command) if isinstance(command, str) else command
        command = [*command_before(COMMAND), *words]
    with contextlib.ExitStack() as files:
        try:
            output, standard_input = (files.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            standard_input.write(given)
            standard_input.seek(0)
        except OSError as error:
            return Outcome(NOT_FOUND, f"there is no room for the input and output of a command ({error.strerror})")
        process = None
        try:
            with shield():
                process = subprocess.Popen(
                    command,
                    shell=isinstance(command, str),
                    cwd=cwd,
                    env={**(os.environ if inherits else {}), **(env or {})},
                    stdin=standard_input,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            code = _wait(process, output.fileno(), timeout)
        except subprocess.TimeoutExpired:
            code = TIMED_OUT
        except OSError as error:
            return Outcome(NOT_FOUND, f"{error.filename}: {error.strerror}")
        except ValueError as error:  # a null byte, or half a character
            return Outcome(NOT_FOUND, f"it cannot be run: {error}")
        finally:
            if process is not None:
                if supervised:
                    _end_supervised(process)
                end_group(process)
        text = _read(output.fileno())
    notes = {TIMED_OUT: f"\n(did not end within {timeout:g} s)", _ENDED: f"\n(ended: more than {MOST_OUTPUT:,} bytes)"}
    return Outcome(code if code != _ENDED else TOO_MUCH, text + notes.get(code, ""))


def _wait(process: "subprocess.Popen[bytes]", output: int, timeout: float) -> int:
    """The exit code; TimeoutExpired where the time is up."""
    end = time.monotonic() + timeout
    while os.fstat(output).st_size <= MOST_OUTPUT:
        try:
            return wait(process, min(_LOOK_SECONDS, max(end - time.monotonic(), 0)))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise
    return _ENDED


def wait(process: "subprocess.Popen[bytes]", seconds: float) -> int:
    """The exit code of a process, as soon as it ends; TimeoutExpired where the time is up.

    `Popen.wait` with a time limit sleeps between two looks, which makes a short command twice as long.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # only Linux has it
        return process.wait(seconds)
    try:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        ended.poll(1000 * seconds)
    finally:
        os.close(handle)
    return process.wait(0)


def _end_supervised(process: "subprocess.Popen[bytes]") -> None:
    """Let the supervisor end all that the command has started; killed, it could not."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        process.terminate()
        wait(process, _SUPERVISOR_SECONDS)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End the command and whatever it has left running in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    half = LONGEST_OUTPUT // 2
    if size <= LONGEST_OUTPUT:
        return os.pread(descriptor, size, 0).decode("utf-8", "replace")
    head, tail = os.pread(descriptor, half, 0), os.pread(descriptor, half, size - half)
    note = f"\n[... {size - 2 * half} bytes left out ...]\n"
    return head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")
