"""Which rollout file is that of a terminal: the one whose instructions carry the terminal's mark.

Codex names a rollout after a thread id that we do not know, and five agents in one directory look alike. So the
profile that Codex is given ends with a mark, which Codex copies into the head of its rollout. Threads that it
starts for itself (a title, a helper) may carry it too; those do not say that they come from the command line.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.providers.json_lines import as_object, json_object

HEAD_BYTES: Final = 2 << 20
_SLACK_SECONDS: Final = 5.0
"""file times are coarser than clocks"""


def mark(terminal_id: str) -> str:
    """What is added to the profile's text."""
    return f"[quintet terminal {terminal_id}]"


def find_rollout(
    home: Path, wanted: str, launched: float, not_ours: dict[Path, int], below: Path | None = None
) -> Path | None:
    """The rollout with a mark, written since the launch. `not_ours` remembers the files of other terminals.

    Below `below` none behind a link is read.
    """
    for path in _candidates(home, launched):
        try:
            size = path.stat().st_size
        except OSError:
            continue
        if not_ours.get(path, -1) >= min(size, HEAD_BYTES):
            continue
        if is_marked(_head(path, below), wanted):
            return path
        not_ours[path] = size
    return None


def conversation_id(rollout: Path, below: Path | None = None) -> str:
    """What `codex resume` calls the conversation of a rollout."""
    found = _payload(_head(rollout, below).split(b"\n", 1)[0]).get("id")
    return found if isinstance(found, str) and re.fullmatch(r"[0-9a-f-]{36}", found) else ""


def is_marked(head: bytes, wanted: str) -> bool:
    """Whether the head of a rollout is that of a conversation of the command line with the mark."""
    lines = head.split(b"\n")
    if _payload(lines[0]).get("source") not in ("cli", None):
        return False
    word = wanted.encode()
    # only the instructions count: an agent that lists processes sees the marks of all
    return any(_payload(line).get("role") == "developer" for line in lines if word in line)


def _candidates(home: Path, launched: float) -> Iterator[Path]:
    day = date.fromtimestamp(launched) - timedelta(days=1)
    last = datetime.now().astimezone().date() + timedelta(days=1)
    while day <= last:
        for path in sorted((home / "sessions" / f"{day:%Y/%m/%d}").glob("rollout-*.jsonl"), reverse=True):
            try:
                if path.stat().st_mtime >= launched - _SLACK_SECONDS:
                    yield path
            except OSError:
                continue
        day += timedelta(days=1)


def _head(path: Path, below: Path | None) -> bytes:
    try:
        with files.reading(path, below) as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _payload(line: bytes) -> dict[str, Any]:
    return as_object(json_object(line).get("payload"))
