"""Logins of agents in sandboxes: one that a CLI renews replaces the user's own, and reaches the other agents.

A renewed login often makes the one before worthless, so that all have to get it soon. An agent can write to its copy:
only a file that differs from the user's in nothing but its tokens is taken.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.providers.private_home import FOLDER

_FILE: Final = "logins.json"
"""in the terminal's folder: the login files, and what was in both of them last"""
_LARGEST: Final = 1 << 20
_FIXED: Final = ("account", "email", "user", "org", "url", "endpoint", "host", "domain", "provider", "type", "client")
"""parts of names whose values say whose login it is and where it is used: they never change"""

Signature = tuple[int, int, int] | None


def remember_logins(terminal: Path, logins: Sequence[tuple[Path, str]]) -> None:
    """Write down which files are a terminal's logins: the user's, and the same as a path in the agent's home."""
    known = [{"user": str(user), "home": name, "same": _digest(_read(user, None))} for user, name in logins]
    files.write(terminal / _FILE, json.dumps(known), terminal)


class Logins:
    """The logins of one terminal."""

    def __init__(self, terminal: Path) -> None:
        self._terminal = terminal
        self._known: list[dict[str, str]] = []
        self._seen: dict[str, tuple[Signature, Signature]] = {}
        with suppress(OSError, ValueError):
            self._known = json.loads(files.read(terminal / _FILE, _LARGEST, terminal))

    def exchange(self) -> None:
        """Bring both sides up to date where one of them was renewed; the user's counts where both were."""
        home = self._terminal / FOLDER
        for login in self._known:
            user, own = Path(login["user"]), home / login["home"]
            seen = (_signature(user, None), _signature(own, home))
            if self._seen.get(login["home"]) == seen:
                continue
            theirs, ours = _read(user, None), _read(own, home)
            with suppress(OSError):
                if theirs is not None and _digest(theirs) != login["same"]:
                    files.write(own, theirs, home)
                    self._agree(login, theirs)
                elif theirs is not None and ours is not None and is_renewed(theirs, ours):
                    files.write(user, ours)
                    self._agree(login, ours)
            self._seen[login["home"]] = (_signature(user, None), _signature(own, home))

    def _agree(self, login: dict[str, str], content: bytes) -> None:
        login["same"] = _digest(content)
        files.write(self._terminal / _FILE, json.dumps(self._known), self._terminal)


def exchange_all(logins: Iterable[Logins]) -> None:
    """Bring the logins of several terminals up to date."""
    for one in logins:
        one.exchange()


def is_renewed(old: bytes, new: bytes) -> bool:
    """Whether a login is another one of the same account: of the same form, and the same but for its tokens."""
    try:
        before, after = json.loads(old), json.loads(new)
    except (ValueError, RecursionError):
        return False
    return isinstance(before, dict) and before != after and _is_alike(before, after, "")


def _is_alike(before: Any, after: Any, name: str) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_is_alike(before[key], after[key], key) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return before == after
    is_fixed = any(part in name.lower() for part in _FIXED)
    return before == after if is_fixed else _kind(before) == _kind(after)


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _read(path: Path, below: Path | None) -> bytes | None:
    try:
        return files.read(path, _LARGEST, below)
    except OSError:
        return None


def _signature(path: Path, below: Path | None) -> Signature:
    """What changes with a file's content, without reading it."""
    try:
        found = path.stat() if below is None else files.look(path, below)
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size) if found else None


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content).hexdigest() if content is not None else ""
