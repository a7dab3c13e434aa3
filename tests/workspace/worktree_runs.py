"""Runs of scripted agents in worktrees of one repository, and what must be as before."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from quintet.roles import PEER_ANALYST, PROGRAMMER, TESTER
from tests.stub.replies import ANALYST_APPROVED, PASS, PROGRAMMER_SUMMARY, TASK
from tests.watch.scripted import DEADLINE, Scripted, project_with_commit, scripted, story, turns


@cache
def project_on_main() -> Path:
    """A repository on the branch main that ignores what runs leave, to be copied."""
    kept = tempfile.TemporaryDirectory(prefix="qm", dir="/tmp")
    atexit.register(kept.cleanup)
    made = Scripted(Path(kept.name))
    shutil.copytree(project_with_commit(), made.wd, symlinks=True)
    made.git("branch", "--move", "main")
    (made.wd / ".gitignore").write_text(".tmp/\n")
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "Ignore")
    return made.wd


@contextmanager
def repository() -> Iterator[Scripted]:
    """A repository on the branch main."""
    with scripted(building_story(), project_on_main()) as made:
        yield made


def building_story(think: float = 0.0) -> dict[str, Any]:
    """A run that passes at once, in which the programmer writes a file."""
    roles = story(think) | {PEER_ANALYST.name: turns(ANALYST_APPROVED, think=think)}
    thinking = [{"think": think}] if think else []
    writing = {"write": {"path": "built.txt", "text": "done\n"}}
    roles[PROGRAMMER.name] = [[*thinking, writing, {"reply": PROGRAMMER_SUMMARY}]]
    roles[TESTER.name] = turns(PASS)
    return roles


def checkout(made: Scripted) -> dict[str, object]:
    """Everything of the user's checkout that a run must not change."""
    tracked = {path: path.read_bytes() for path in made.wd.rglob("*") if path.is_file() and ".git" not in path.parts}
    words = (("status", "--porcelain=v2", "--branch"), ("stash", "list"), ("rev-parse", "HEAD"), ("ls-files", "-s"))
    return {"files": tracked, "git": [made.git(*word) for word in words]}


def branches(made: Scripted) -> list[str]:
    """The branches of runs."""
    return made.git("for-each-ref", "--format=%(refname:short)", "refs/heads/quintet").split()


def trees(made: Scripted) -> list[Path]:
    return sorted(path for path in (made.root / "x/quintet/worktrees").iterdir() if path.is_dir())


def check_tasks_at_once(project: Scripted, number: int) -> None:
    """Start several tasks in one moment: each passes on its own branch, and all branches can be merged."""
    before = checkout(project)
    tasks = [f"{TASK}\nNumber {one}.\n" for one in range(number)]
    started = [project.start("run", "--plain", "--worktree", "--cleanup-on-exit", PROMPT=task) for task in tasks]
    outputs = [process.communicate(timeout=3 * DEADLINE)[0] for process in started]
    assert [process.returncode for process in started] == [0] * number, outputs
    assert checkout(project) == before
    assert len(branches(project)) == number
    for branch in branches(project):
        project.git("merge", "--quiet", "--no-edit", branch)
    assert (project.wd / "built.txt").exists()
