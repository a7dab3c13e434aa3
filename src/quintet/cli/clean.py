"""`quintet clean`: list what old runs have left, ask, and remove it."""

import sys
from pathlib import Path

import click

from quintet.errors import QuintetError, RunError
from quintet.program import program
from quintet.prose import hanging, plural
from quintet.setup.leftovers import (
    Leftover,
    old_run_folders,
    records_without_project,
    server_file_leftovers,
    sessions_of_ended_runs,
    terminal_leftovers,
)
from quintet.setup.run_branches import merged_worktrees


def clean(*, wd: Path, terminals: bool, runs: bool, keep: int, dry_run: bool, yes: bool) -> None:
    """Find what old runs have left, and remove it if the user agrees."""
    found = [
        *(sessions_of_ended_runs() if terminals else ()),
        *terminal_leftovers(),
        *server_file_leftovers(wd),
        *merged_worktrees(wd),
        *records_without_project(),
        *(old_run_folders(wd, keep) if runs else ()),
    ]
    more = not terminals and any(True for _ in sessions_of_ended_runs())
    _remove(found, dry_run=dry_run, yes=yes)
    if more:
        told = f"Terminals of runs that have ended are still open; {program()} clean --terminals ends them."
        click.echo(hanging("", told))


def _remove(found: list[Leftover], *, dry_run: bool, yes: bool) -> None:
    """List what was found, ask, and remove it."""
    if not found:
        click.echo("Nothing is left of old runs.")
        return
    for one in found:
        click.echo(hanging(f"  {one.what}: ", one.where))
    if dry_run:
        click.echo(f"\n{plural(len(found), 'thing')} would be removed.")
        return
    if not yes and not sys.stdin.isatty():
        raise RunError("nothing was removed, because there is nobody to ask; --yes removes without asking")
    if not yes and not click.confirm(f"\nRemove {plural(len(found), 'thing')}?"):
        click.echo("Nothing was removed.")
        return
    removed, problems = 0, []
    for one in found:
        try:
            one.remove()
            removed += 1
        except (OSError, QuintetError) as error:
            problems.append(str(error))
    click.echo(f"\n{plural(removed, 'thing')} removed.")
    if problems:
        raise RunError("; ".join(problems))
