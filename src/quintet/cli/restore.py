"""`quintet restore`: bring a project back to what it was before a run."""

from pathlib import Path

import click

from quintet.errors import RunError
from quintet.prose import hanging, plural
from quintet.setup.restoring import restore
from quintet.watch.runs.folders import find_run


def restore_run(run: str | None, wd: Path) -> None:
    """Undo what has changed since a run began, and say where it is kept."""
    folder = find_run(wd, run)
    done = restore(folder)
    if not done.number:
        click.echo(f"Nothing has changed since the run {folder.name} began.")
        return
    click.echo(hanging("", f"The project is again as it was before the run {folder.name}."))
    click.echo(hanging(f"{plural(done.number, 'change')} undone, kept as ", str(done.patch)))
    if done.failed:
        raise RunError("not put back: " + "; ".join(f"{name} ({reason})" for name, reason in done.failed.items()))
