"""`quintet diff`: what a run has changed, as a patch."""

import sys
from pathlib import Path

import click

from quintet.errors import RunError
from quintet.watch.console.diff_view import git_colours, patch_lines, show_in_pager, stat_lines
from quintet.watch.runs.diff import diff_of
from quintet.watch.runs.folders import find_run, read_run


def diff(run: str | None, wd: Path, stat: bool) -> None:
    """Show the diff of a run to a person, or print it for a program."""
    folder = find_run(wd, run)
    found = diff_of(folder, read_run(folder))
    if not found.patch:
        if found.note:
            raise RunError(found.note)
        click.echo(f"The run {folder.name} has changed nothing.", err=True)
    elif sys.stdout.isatty():
        colours = git_colours(wd)
        lines = stat_lines(found.patch, colours) if stat else patch_lines(found.patch, colours)
        show_in_pager(wd, "".join(f"{line}\n" for line in (*filter(None, [found.note]), *lines)))
    else:
        if found.note:
            click.echo(found.note, err=True)
        click.echo("\n".join(stat_lines(found.patch, {})) if stat else found.patch, nl=stat)
