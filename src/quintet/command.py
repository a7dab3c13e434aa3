"""Run a command of the user's or of a tool, bounded in time and output, and never left behind."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Shield = Callable[[], AbstractContextManager[None]]
LONGEST_OUTPUT: Final = 1_000_000
"""bytes that are kept, half from the beginning and half from the end"""
NOT_FOUND: Final = 127
TIMED_OUT: Final = 124


@dataclass(frozen=True)
class Outcome:
    """How a command ended; the exit codes for "not found" and "timed out" are the shell's."""

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
) -> Outcome:
    """Run a shell line (a text) or a program (a list) in a process group of its own, and wait for it.

    The shield keeps signals away from the start: one in its middle would leave a process that nobody ends.
    """
    with contextlib.ExitStack() as files:
        try:
            output = files.enter_context(tempfile.TemporaryFile())
        except OSError as error:
            return Outcome(NOT_FOUND, f"there is no room for the output of a command ({error.strerror})")
        process = None
        try:
            with shield():
                process = subprocess.Popen(
                    command,
                    shell=isinstance(command, str),
                    cwd=cwd,
                    env={**os.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = TIMED_OUT
        except OSError as error:
            return Outcome(NOT_FOUND, f"{error.filename}: {error.strerror}")
        except ValueError as error:  # a null byte, or half a character
            return Outcome(NOT_FOUND, f"it cannot be run: {error}")
        finally:
            if process is not None:
                end_group(process)
        text = _read(output.fileno())
    return Outcome(code, text if code != TIMED_OUT else f"{text}\n(did not end within {timeout:g} s)")


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
