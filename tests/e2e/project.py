"""A small real project: a git repository with OpenSpec set up, a task, and what the agents do to it."""

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.brains import (
    ANALYST_APPROVED,
    ANALYST_SUMMARY,
    PROGRAMMER_APPROVED,
    PROGRAMMER_SUMMARY,
    TEST_FAIL,
    TEST_PASS,
    Answer,
    Script,
)

CHANGE = "add-answer"
TASK = """\
*** ORIGINAL EXPLORE SUMMARY ***
The project has no answer yet. Write it down in answer.txt.

*** SCENARIO TEST ***
Run: cat answer.txt
Expected: 42
"""
LONG = 150_000
AWKWARD = (
    "\ttab, `backticks`, \"double\" and 'single' quotes, $HOME, $(date), \\backslashes\\ and %s",
    "/not a command",
    "!neither is this",
    "@no file",
    "# no note",
    "emoji 🎻👩‍👩‍👧‍👦 and umlauts äöü, 中文, e\u0301",
    "› 1. Yes, proceed (y)",
    "esc to interrupt",
    "",
)
VERIFY = "grep -qx 42 answer.txt"

_ARTIFACTS = {
    "proposal.md": """\
## Why

The answer is not written down anywhere, so nobody can look it up when it is needed.

## What Changes

- answer.txt holds the answer

## Capabilities

### New Capabilities
- `answer`: where the answer stands

## Impact

One new file.
""",
    "specs/answer/spec.md": """\
## ADDED Requirements

### Requirement: The answer is written down
The project SHALL hold the answer in answer.txt.

#### Scenario: Looking it up
- **WHEN** answer.txt is read
- **THEN** it says 42
""",
    "tasks.md": """\
## 1. The file

- [ ] 1.1 Write answer.txt
""",
}


def long_notes() -> str:
    """Return 150 kB of all that is hard to type, on lines of their own and behind a number."""
    rows = (f"{row:05d} {AWKWARD[row % len(AWKWARD)]}\n{AWKWARD[row * 2 % len(AWKWARD)]}" for row in range(LONG // 40))
    return "\n".join(rows).encode()[:LONG].decode(errors="ignore")


def long_task(notes: str) -> str:
    """The task with notes in it."""
    begin, mark, end = TASK.partition("\n*** SCENARIO TEST ***")
    return f"{begin}\n{notes}\n{mark}{end}"


def _write(path: str, text: str) -> str:
    return f"mkdir -p $(dirname {path}) && cat > {path} <<'ARTIFACT'\n{text}ARTIFACT"


def _folder() -> str:
    return f"openspec/changes/{CHANGE}"


FAIL_THEN_PASS: Script = {
    "analyst_summary.md": [
        Answer(
            ANALYST_SUMMARY,
            before=(
                f"openspec new change {CHANGE}",
                " && ".join(_write(f"{_folder()}/{name}", text) + "\ntrue" for name, text in _ARTIFACTS.items()),
            ),
        ),
        Answer(ANALYST_SUMMARY),
    ],
    "analyst_review.md": [Answer(ANALYST_APPROVED, before=(f"openspec validate {CHANGE}",))],
    "programmer_summary.md": [
        Answer(PROGRAMMER_SUMMARY, before=("echo 41 > answer.txt",)),
        Answer(PROGRAMMER_SUMMARY),
        Answer(PROGRAMMER_SUMMARY, before=("echo 42 > answer.txt", f"sed -i 's/\\[ \\]/[x]/' {_folder()}/tasks.md")),
    ],
    "programmer_review.md": [Answer(PROGRAMMER_APPROVED, before=("cat answer.txt",))],
    "test_result.md": [
        Answer(TEST_FAIL, before=("cat answer.txt",)),
        Answer(TEST_PASS, before=("cat answer.txt",)),
    ],
}
"""The first implementation is wrong and fails its test; the second is right, which VERIFY confirms."""


_template: list[Path] = []
"""the project that was made first: setting up OpenSpec takes seconds, a copy does not"""


def make_project(folder: Path, environment: Mapping[str, str]) -> None:
    """Make a repository with one commit, in which OpenSpec is set up."""
    if not _template:
        kept = Path(tempfile.mkdtemp(prefix="q5-"))
        atexit.register(shutil.rmtree, kept, ignore_errors=True)
        _set_up(kept / "project", environment)
        _template.append(kept / "project")
    shutil.copytree(_template[0], folder, symlinks=True)
    git(folder, "update-index", "--refresh")


def _set_up(folder: Path, environment: Mapping[str, str]) -> None:
    folder.mkdir()
    (folder / "README.md").write_text("# A project without an answer\n")
    for command in (
        ["git", "init", "--quiet", "--initial-branch=main"],
        ["git", "config", "user.name", "Test"],
        ["git", "config", "user.email", "test@localhost"],
        ["openspec", "init", "--tools", "codex,claude", "."],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", "Begin"],
    ):
        done = subprocess.run(
            command,
            cwd=folder,
            env={**environment, "OPENSPEC_TELEMETRY": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
