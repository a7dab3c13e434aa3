"""The agent CLIs as programs: where they are, and which options a release knows."""

import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from quintet.errors import ServerError

HELP_SECONDS: Final = 20.0
PERMISSIONS: Final = "QUINTET_PERMISSIONS"
"""`ask`: the agents ask before they act; anything else: they run unattended"""


def find_program(name: str, env: Mapping[str, str], hint: str) -> str:
    """Where a program is on the PATH that it will be started with."""
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        raise ServerError(f"{name} was not found on PATH; install it ({hint})")
    return found


def help_of(program: str, env: Mapping[str, str]) -> str:
    """What a program says of its options. Asked once for each installed release."""
    real = Path(program).resolve()
    try:
        changed = real.stat().st_mtime_ns
    except OSError:
        changed = 0
    return _help(program, str(real), changed, tuple(sorted(env.items())))


@lru_cache(maxsize=32)
def _help(program: str, real: str, changed: int, env: tuple[tuple[str, str], ...]) -> str:  # noqa: ARG001 - the key
    try:
        done = subprocess.run(
            [program, "--help"],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HELP_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


def knows(help_text: str, option: str) -> bool:
    """Whether a help text names an option."""
    return any(option in line.replace(",", " ").replace("=", " ").split() for line in help_text.splitlines())


def asks(env: Mapping[str, str]) -> bool:
    """Whether the agents shall ask before they act."""
    return env.get(PERMISSIONS, "").strip().lower() == "ask"
