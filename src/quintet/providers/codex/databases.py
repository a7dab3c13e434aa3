"""Codex's databases. Five that start together and find them missing, or older than their release, break each other.

They all try to create the same tables, and most end with "its local database appears to be damaged". So the first
start after an installation or an update is made alone, by a Codex that does nothing else.
"""

import subprocess
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

WAIT_SECONDS: Final = 30.0
_alone = threading.Lock()
"""terminals are prepared side by side, in threads"""


def make_ready(program: str, home: Path, env: Mapping[str, str]) -> None:
    """Let Codex bring its databases up to date, unless it has been used since it was installed."""
    try:
        installed = Path(program).resolve().stat().st_ctime
    except OSError:
        return
    with _alone:
        if _used_since(home, installed):
            return
        _start_once(program, str(home), installed, tuple(sorted(env.items())))


def _used_since(home: Path, installed: float) -> bool:
    try:
        return any(path.stat().st_mtime > installed for path in home.glob("*.sqlite*"))
    except OSError:
        return False


@lru_cache(maxsize=32)
def _start_once(program: str, home: str, installed: float, env: tuple[tuple[str, str], ...]) -> None:  # noqa: ARG001
    try:
        # it opens its databases, finds its input at an end and goes
        subprocess.run(
            [program, "app-server"],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=WAIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return  # then the terminals will tell
