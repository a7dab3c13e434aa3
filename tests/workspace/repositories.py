"""What the tests of worktrees share: shell lines, settings, and a stand-in for a kill."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from quintet import files, git
from quintet.config import Settings
from quintet.workspace.worktrees import Worktree

TITLE = "Add a greeting"


def sh(folder: Path, line: str) -> str:
    """The output of a shell line that has to succeed."""
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def settings(wd: Path, **more: Any) -> Settings:
    return Settings(wd=wd, prompt="# Add a greeting\n", workspace_mode="worktree", **more)


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


READS: Final = {
    *("cat-file", "check-ref-format", "diff", "for-each-ref", "log", "ls-files", "merge-base", "merge-tree"),
    *("rev-list", "rev-parse", "show-ref", "status", "symbolic-ref"),
}
"""commands of git after which everything is as before: a kill there shows nothing"""


def kill_after(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything that writes fail like a kill, from a certain call on."""
    left, run_git = calls, git.run

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            nonlocal left
            if function is run_git and words[1] in READS:
                return function(*words, **more)
            if left == 0:
                raise Killed
            left -= 1
            return function(*words, **more)

        return call

    writers = (
        (git, "run"),
        (Worktree, "save"),
        (Worktree, "forget"),
        (files, "write"),
        (files, "copy"),
        (shutil, "rmtree"),
    )
    for owner, name in writers:
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
