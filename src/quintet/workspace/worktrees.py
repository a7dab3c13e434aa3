"""The worktrees of runs: one file about each in the user's state directory, from which every command finds them."""

import contextlib
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from quintet import files
from quintet.layout import Workspace, worktrees_folder
from quintet.processes import Process

_LARGEST: Final = 10_000_000
_SUFFIX: Final = ".json"


class Stage(StrEnum):
    """How far a worktree is."""

    CREATING = "creating"
    READY = "ready"
    REMOVING = "removing"


class Worktree(BaseModel):
    """A git worktree that was made for a run."""

    model_config = ConfigDict(frozen=True)

    name: str
    project: Path
    """the user's checkout that the run was started in"""
    top: Path
    """the folder of the worktree"""
    prefix: str = ""
    """the way from there to what the agents work in, where the project is a folder of a larger repository"""
    branch: str
    base: str
    """the commit that the worktree was made from"""
    start: str
    """the commit that its branch begins with: the base, or one with the user's uncommitted changes"""
    task: str
    """a digest of the task's text"""
    included: tuple[str, ...] = ()
    stage: Stage = Stage.CREATING
    merged_at: str = ""
    """the commit that its branch was at when it was merged"""
    merged_as: str = ""
    """the commit that the user's branch was at then"""
    deletable_at: str = ""
    """the commit that its branch may be at where it is deleted with it"""
    pid: int = 0
    started: str = ""
    """the process that makes it, and when that was started"""

    @property
    def tree(self) -> Path:
        return self.top / self.prefix if self.prefix else self.top

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.project, self.tree, self.branch, self.included)

    @property
    def has_maker(self) -> bool:
        """Whether the process that makes it, and starts the run in it, is still there."""
        return Process(self.pid, self.started).is_there

    @property
    def file(self) -> Path:
        return worktrees_folder() / f"{self.name}{_SUFFIX}"

    def save(self) -> None:
        """Write it down so that it outlives a power failure."""
        files.write(self.file, self.model_dump_json(indent=1), durable=True)

    def forget(self) -> None:
        """Remove what is written about it."""
        with contextlib.suppress(FileNotFoundError):
            files.remove(self.file)


def all_worktrees() -> Iterator[Worktree]:
    """All that is written down; a file that cannot be read is none."""
    with contextlib.suppress(OSError):
        for path in sorted(worktrees_folder().glob(f"*{_SUFFIX}")):
            with contextlib.suppress(OSError, ValidationError):
                yield Worktree.model_validate_json(files.read(path, _LARGEST))


def worktrees_of(project: Path) -> list[Worktree]:
    """The worktrees that belong to a project."""
    real = Path(os.path.realpath(project))
    return [one for one in all_worktrees() if one.project == real]


def worktree_branches() -> set[str]:
    """The branches of all runs in worktrees, in whatever repository."""
    return {one.branch for one in all_worktrees()}


def worktree_at(folder: Path) -> Worktree | None:
    """The worktree of a run that a folder is in."""
    real = Path(os.path.realpath(folder))
    return next((one for one in all_worktrees() if real.is_relative_to(one.top)), None)


def trees_of(project: Path) -> list[Path]:
    """All folders in which runs of a project work: the project itself, and its worktrees."""
    return [project, *(one.tree for one in worktrees_of(project))]
