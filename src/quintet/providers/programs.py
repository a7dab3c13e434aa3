"""The agent CLIs as programs: where they are, and which options a release knows."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from quintet.errors import ServerError
from quintet.providers.registration import Registration

SECONDS: Final = 20.0
_VERSION = re.compile(r"\b\d+\.\d+\.\d+\b")


def find_program(agent: Registration, env: Mapping[str, str]) -> str:
    """Where the program of an agent CLI is, by the PATH that it will be started with."""
    found = shutil.which(agent.program, path=env.get("PATH"))
    if found is None:
        raise ServerError(f"{agent.program} was not found on PATH; install it ({agent.install})")
    return found


def help_of(program: str, env: Mapping[str, str]) -> str:
    """What a program says of its options."""
    return _ask(program, "--help", env)


def version_of(program: str, env: Mapping[str, str]) -> tuple[int, ...]:
    """A program's release, for instance (2, 1, 325); empty where it does not say."""
    found = _VERSION.search(_ask(program, "--version", env))
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _ask(program: str, question: str, env: Mapping[str, str]) -> str:
    """What a program answers; each installed release is asked once."""
    real = Path(program).resolve()
    try:
        changed = real.stat().st_ctime_ns
    except OSError:
        changed = 0
    return _answer(program, question, str(real), changed, tuple(sorted(env.items())))


@lru_cache(maxsize=64)
def _answer(program: str, question: str, real: str, changed: int, env: tuple[tuple[str, str], ...]) -> str:  # noqa: ARG001 - the key
    done = run_briefly([program, question], dict(env))
    return done.stdout.decode(errors="replace") if done else ""


def refusal(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> str:
    """What a program prints when it does not start with these arguments; empty where it starts, or prints nothing."""
    done = run_briefly(argv, env, cwd)
    return (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip() if done and done.returncode else ""


def run_briefly(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path | None = None
) -> "subprocess.CompletedProcess[bytes] | None":
    """Run a program that ends by itself; None where it cannot be started, or takes too long."""
    empty = subprocess.DEVNULL
    try:
        return subprocess.run(argv, env=env, cwd=cwd, stdin=empty, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None


def knows(help_text: str, option: str) -> bool:
    """Whether a help text names an option."""
    return any(option in line.replace(",", " ").replace("=", " ").split() for line in help_text.splitlines())
