"""Merge the branch of a worktree into the branch of the user's checkout. Whatever is in the way is said beforehand."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from quintet import git
from quintet.errors import GitError, RunError
from quintet.program import program
from quintet.prose import first_few, printable
from quintet.workspace.repository import SECONDS, Repository
from quintet.workspace.worktrees import Worktree

_CONFLICT: Final = 1
_SUBMODULE: Final = "160000"


def uncommitted_work(worktree: Worktree) -> list[str]:
    """The paths in a worktree that are not committed, without the files that were copied into it."""
    if not worktree.top.is_dir():
        return []
    copied = {str(Path(worktree.prefix, path)) for path in worktree.included}
    return [path for path in _uncommitted(worktree.top, "all") if path not in copied]


def _uncommitted(folder: Path, untracked: str) -> list[str]:
    form = ("status", "--porcelain", "-z", "--no-renames", f"--untracked-files={untracked}")
    return [line[3:] for line in git.run(folder, *form).parts]


def has_unmerged_commits(worktree: Worktree, repository: Repository) -> bool:
    """Whether it has commits, on its branch or beside it, that no other branch has as they are or squashed."""
    head = git.answer(worktree.top, "rev-parse", "--verify", "--quiet", "HEAD") if worktree.top.is_dir() else None
    tips = {repository.branch_commit(worktree.branch), head or ""} - {"", worktree.start}
    own = f"refs/heads/{worktree.branch}"
    return not all(repository.heads_with(_merged_as(worktree, tip)) - {own} for tip in tips)


def submodule_with_commits(worktree: Worktree, repository: Repository) -> str:
    """A submodule that the branch has at a commit which the checkout has not: it goes with the worktree."""
    tip = repository.branch_commit(worktree.branch) or worktree.start
    parts = iter(git.run(repository.top, "diff-tree", "-r", "--raw", "-z", "--no-renames", worktree.start, tip).parts)
    for line, path in zip(parts, parts, strict=True):
        _, mode, _, commit, _ = line.split()
        if mode == _SUBMODULE and git.answer(repository.top / path, "cat-file", "-e", commit) is None:
            return path
    return ""


def _merged_as(worktree: Worktree, tip: str) -> str:
    """The commit that a commit of the worktree came into another branch with: itself, or the one it was squashed to."""
    return worktree.merged_as if tip == worktree.merged_at and worktree.merged_as else tip


def merge(worktree: Worktree, repository: Repository, message: str, *, squash: bool) -> str:
    """Merge the branch, as one commit with the message where `squash`; the commit that the checkout is at then."""
    tip, head = repository.branch_commit(worktree.branch), repository.commit_of("HEAD")
    if not tip:
        raise RunError(f"there is no branch {worktree.branch} any more")
    if tip == worktree.start:
        raise RunError(f"there is nothing to merge: {worktree.branch} has no commit of the run")
    if git.answer(repository.top, "merge-base", "--is-ancestor", _merged_as(worktree, tip), head) is not None:
        raise RunError(f"{worktree.branch} is merged already; {program()} discard removes it and its worktree")
    _refuse_unclean(worktree, repository)
    tree = _merged_tree(repository, worktree.branch, head, tip)
    if tree and tree == repository.tree_of(head):  # squashed by hand, or by a process that was killed then
        return _save_merged(worktree, tip, head)
    if squash:
        if not tree:
            raise RunError("--squash needs git 2.38 or newer")
        made = git.run(repository.top, "commit-tree", "-p", head, "-m", message, tree).text
        words: tuple[str, ...] = ("--ff-only", made)
    else:
        words = ("--no-edit", f"refs/heads/{worktree.branch}")
    try:
        git.run(repository.top, "merge", "--quiet", *words, hooks=True, seconds=SECONDS)
    except GitError as error:
        git.run(repository.top, "merge", "--abort", check=False)
        raise RunError(f"nothing is merged: {error}") from None
    return _save_merged(worktree, tip, repository.commit_of("HEAD"))


def _save_merged(worktree: Worktree, tip: str, commit: str) -> str:
    worktree.model_copy(update={"merged_at": tip, "merged_as": commit}).save()
    return commit


def _refuse_unclean(worktree: Worktree, repository: Repository) -> None:
    if name := git.unfinished_command(repository.top):
        raise RunError(f"git is in the middle of something in {repository.top} ({name}); finish that first")
    if git.answer(repository.top, "symbolic-ref", "--quiet", "HEAD") is None:
        raise RunError(f"{repository.top} is on no branch to merge into (git switch NAME)")
    if left := uncommitted_work(worktree):
        raise RunError(f"the work in {worktree.tree} is not committed: {_some(left)}; commit it there first")
    if changed := _uncommitted(repository.top, "no"):
        raise RunError(f"uncommitted changes are in the way: {_some(changed)}; commit or stash them (git stash)")
    branch = f"refs/heads/{worktree.branch}"
    new = git.run(repository.top, "diff", "--name-only", "--diff-filter=A", "-z", f"HEAD...{branch}").parts
    tracked = set(git.run(repository.top, "ls-files", "-z").parts)
    if there := [path for path in new if path not in tracked and os.path.lexists(repository.top / path)]:
        raise RunError(f"files that git does not track are in the way: {_some(there)}; move them away")


def _merged_tree(repository: Repository, branch: str, head: str, tip: str) -> str:
    """The tree that the merge would make, without making it; empty where git is too old to say."""
    form = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z")
    done = git.run(repository.top, *form, head, tip, check=False)
    if done.code == _CONFLICT:
        raise RunError(
            f"{branch} conflicts with your branch in {_some(done.parts[1:])}; "
            f"merge it by hand (git merge {branch}), nothing is changed"
        )
    return done.parts[0] if done.code == 0 else ""


def _some(paths: Iterable[str]) -> str:
    return first_few([printable(path) for path in sorted(set(paths))])
