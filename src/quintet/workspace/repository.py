"""The repository that worktrees are made in: where it is, one process at a time, and its branches."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import files, git
from quintet.errors import GitError, RunError

SECONDS: Final = 600.0
"""for a git command that writes a whole work tree"""
_WAIT_SECONDS: Final = 120.0
_PAUSE: Final = 0.02
_HEADS: Final = "refs/heads/"


@dataclass(frozen=True)
class Repository:
    """The repository of a project."""

    project: Path
    top: Path
    """the work tree that the project is in"""
    common: Path
    """the git folder that all its work trees share"""
    prefix: str
    """the way from the top to the project; empty where they are the same"""

    def commit_of(self, name: str) -> str:
        """The commit that a name stands for; empty where there is none."""
        return (
            git.answer(self.project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}") or ""
        )

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return git.answer(self.project, "rev-parse", f"{commit}^{{tree}}") or ""

    def branch_commit(self, branch: str) -> str:
        """The commit that a branch is at; empty where there is no such branch."""
        return self.commit_of(_HEADS + branch)

    def heads_with(self, commit: str) -> set[str]:
        """The branches that a commit is on, and HEAD."""
        form = ("for-each-ref", "--format=%(refname)", f"--contains={commit}", _HEADS)
        found = set((git.answer(self.project, *form) or "").split())
        if git.answer(self.project, "merge-base", "--is-ancestor", commit, "HEAD") is not None:
            found.add("HEAD")
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process of Quintet add or remove worktrees of the repository until the block ends."""
        handle = os.open(self.common, os.O_RDONLY)
        try:
            deadline = time.monotonic() + _WAIT_SECONDS
            while not files.try_lock(handle):
                if time.monotonic() > deadline:
                    raise RunError(f"{self.common}: another process makes a worktree there; try again when it is done")
                time.sleep(_PAUSE)
            yield
        finally:
            os.close(handle)


def repository_of(project: Path) -> Repository:
    """The repository of a project; RunError where it has none, or none with a work tree."""
    what = ("--show-toplevel", "--git-common-dir", "--show-prefix")
    try:
        answer = git.run(project, "rev-parse", "--path-format=absolute", *what, check=False)
    except GitError as error:
        raise RunError(str(error)) from None
    if answer.code:
        raise RunError(f"{project}: a worktree needs a git repository with a work tree ({answer.error})")
    found = answer.text.split("\n")
    if len(found) != len(what):
        raise RunError(f"{project}: no worktree can be made, because a folder's name contains a line end")
    top, common, prefix = found
    return Repository(project, Path(top), Path(common), prefix.removesuffix("/"))
