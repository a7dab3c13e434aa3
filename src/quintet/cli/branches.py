"""`quintet merge` and `quintet discard`: what becomes of the branch of a run."""

from pathlib import Path

import click

from quintet.program import program
from quintet.prose import hanging
from quintet.setup.run_branches import discard_run, merge_run


def merge(run: str | None, wd: Path, squash: bool, force: bool) -> None:
    """Merge the branch of a run."""
    worktree, commit = merge_run(wd, run, squash=squash, force=force)
    click.echo(hanging("", f"{worktree.branch} is merged; your branch is at {commit[:12]}."))
    click.echo(hanging("", f"{program()} discard removes the worktree and the branch."))


def discard(run: str | None, wd: Path, force: bool) -> None:
    """Remove the worktree and the branch of a run."""
    worktree = discard_run(wd, run, force=force)
    click.echo(hanging("", f"The worktree {worktree.tree} and the branch {worktree.branch} are removed."))
    click.echo(hanging("", "The report and the replies of its runs are kept in .tmp/ of the project."))
