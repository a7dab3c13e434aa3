"""The tutorial does what it says: its commands run in one shell, and each block of promised output is found."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks

SECONDS = 240


@dataclass
class Stage:
    """Commands, the exit code of the last of them, and lines that they promise to print."""

    commands: str
    exit_code: int
    promised: list[str] = field(default_factory=list)


def stages() -> list[Stage]:
    found: list[Stage] = []
    for block in blocks(DOCS / "tutorial.md"):
        if run := re.fullmatch(r"run(?:: exit code (\d+))?", block.mark):
            found.append(Stage(block.text, int(run[1] or 0)))
        elif block.mark == "prints":
            found[-1].promised += [line for line in block.text.splitlines() if line.strip()]
        else:
            assert not block.mark, f"what does <!-- {block.mark} --> mean?"
    return found


def script(steps: list[Stage], place: Path) -> str:
    """All commands in one shell, so that directories and variables carry over; each stage's words in a file."""
    lines = []
    for number, step in enumerate(steps):
        lines.append(f"{{\n{step.commands}}} > {place}/{number}.out 2>&1\necho $? > {place}/{number}.code")
    return "\n".join(lines)


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path, because those of sockets are; what the tutorial leaves there is ended."""
    folder = Path(tempfile.mkdtemp(prefix="qt", dir="/tmp"))
    (folder / "home").mkdir()
    (folder / "home" / ".gitconfig").write_text("[user]\nname = Somebody\nemail = somebody@localhost\n")
    (folder / "work").mkdir()
    try:
        yield folder
    finally:
        subprocess.run(["quintet", "stop", "--all"], env=environment(folder), capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def environment(place: Path) -> dict[str, str]:
    """A machine with nothing on it but the installed command, what it needs, and a name for commits."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(place / "home"),
        "XDG_STATE_HOME": str(place / "x"),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def missing(promised: list[str], said: str) -> list[str]:
    """The promised lines that do not come, in this order; an ellipsis stands for anything."""
    rest = iter(said.splitlines())
    for number, line in enumerate(promised):
        pattern = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("…")))
        if not any(pattern.fullmatch(one.rstrip()) for one in rest):
            return promised[number:]
    return []


def test_the_tutorial_does_what_it_says(place: Path) -> None:
    steps = stages()
    assert len(steps) >= 8
    subprocess.run(
        ["sh", "-c", script(steps, place)],
        cwd=place / "work",
        env=environment(place),
        stdin=subprocess.DEVNULL,
        timeout=SECONDS,
        check=True,
    )
    for number, step in enumerate(steps):
        said = (place / f"{number}.out").read_text(encoding="utf-8")
        assert int((place / f"{number}.code").read_text()) == step.exit_code, f"{step.commands}\n{said}"
        assert missing(step.promised, said) == [], f"{step.commands}\n{said}"


def test_a_promise_that_is_not_kept_is_noticed() -> None:
    said = "12:00 first\n12:01 second, 5 characters\n"
    assert missing(["… first", "… second, … characters"], said) == []
    assert missing(["… second, … characters", "… first"], said) == ["… first"]
    assert missing(["first"], said) == ["first"]
