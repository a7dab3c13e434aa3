"""Remove a worktree and its branch. What is done twice, after a kill, does no harm."""

import shutil

from quintet import git
from quintet.errors import RunError
from quintet.workspace.repository import SECONDS, Repository
from quintet.workspace.worktrees import Stage, Worktree


def remove(worktree: Worktree, repository: Repository, *, with_commits: bool = False) -> None:
    """Remove a worktree, its folder and its branch. A branch that has got commits stays, unless `with_commits`."""
    worktree = begin_removal(worktree, repository, with_commits=with_commits)
    git.run(repository.top, "worktree", "remove", "--force", "--force", str(worktree.top), seconds=SECONDS, check=False)
    try:
        if worktree.top.exists():
            shutil.rmtree(worktree.top)
    except OSError as error:
        raise RunError(f"{error.filename or worktree.top}: cannot be removed ({error.strerror})") from None
    if repository.branch_commit(worktree.branch) == worktree.deletable_at:
        git.run(repository.top, "update-ref", "-d", f"refs/heads/{worktree.branch}", worktree.deletable_at)
    worktree.forget()


def begin_removal(worktree: Worktree, repository: Repository, *, with_commits: bool) -> Worktree:
    """Write down that a worktree is removed: from then on every start completes it."""
    if worktree.stage is Stage.REMOVING:
        return worktree
    tip = repository.branch_commit(worktree.branch) if with_commits else ""
    begun = worktree.model_copy(update={"stage": Stage.REMOVING, "deletable_at": tip or worktree.start})
    begun.save()
    return begun
