"""The one way for a test to wait: look again until a condition holds, and show the evidence if it never does."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

import psutil

DEADLINE: Final = 30.0
"""seconds; far more than anything takes, because a deadline that is nearly met makes a test fail on a busy machine"""
PAUSE_SECONDS: Final = 0.01
JOURNAL_LINES: Final = 15
T = TypeVar("T")


def eventually(
    look: Callable[[], T],
    what: str = "the condition",
    *,
    wanted: Callable[[T], object] = bool,
    deadline: float = DEADLINE,
    on_failure: Callable[[], str] = str,
) -> T:
    """Return the first value of `look` that is `wanted`; after the deadline, fail with what `on_failure` returns."""
    end = time.monotonic() + deadline
    while not wanted(value := look()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {deadline:.0f} s; last seen: {value!r}\n{on_failure()}")
        time.sleep(PAUSE_SECONDS)
    return value


def show_journals(folder: Path) -> str:
    """Return the last lines of every journal below a folder."""
    parts = []
    for path in sorted(folder.rglob("journal.jsonl")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-JOURNAL_LINES:]
        parts.append("\n".join([f"--- {path}", *lines]))
    return "\n".join(parts) or f"--- no journal below {folder}"


def show_processes(mentioning: Iterable[str]) -> str:
    """Return the command lines of the processes that mention one of these texts, such as a folder of the test."""
    texts = list(mentioning)
    lines = []
    for process in psutil.process_iter(["pid", "ppid", "status", "cmdline"]):
        command = " ".join(process.info["cmdline"] or ())
        if any(text in command for text in texts):
            pid, parent, status = (process.info[name] for name in ("pid", "ppid", "status"))
            lines.append(f"{pid} (of {parent}, {status}): {command[:300]}")
    return "\n".join(["--- processes", *lines])
