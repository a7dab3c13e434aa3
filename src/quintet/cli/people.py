"""`quintet approve`, `reject`, `note` and `pause`: what people tell a run."""

from pathlib import Path

import click

from quintet.errors import RunError
from quintet.setup import people
from quintet.setup.callers import refuse_agents


def approve(run: str | None, wd: Path) -> None:
    """Approve what a run waits with."""
    refuse_agents()
    people.approve(wd, run, click.echo)


def reject(words: tuple[str, ...], wd: Path) -> None:
    """Send back what a run waits with."""
    refuse_agents()
    run, notes = _run_and_text(words, "reject")
    people.reject(wd, run, notes, click.echo)


def note(words: tuple[str, ...], wd: Path, role: str | None) -> None:
    """Leave a note for a later prompt."""
    refuse_agents()
    run, text = _run_and_text(words, "note")
    people.leave_note(wd, run, text, role or "", click.echo)


def pause(run: str | None, wd: Path) -> None:
    """Let a run stop after its current turn."""
    refuse_agents()
    people.pause(wd, run, click.echo)


def _run_and_text(words: tuple[str, ...], command: str) -> tuple[str | None, str]:
    """The run, where one is named, and the text."""
    if len(words) > 2:  # noqa: PLR2004 - a run and a text
        raise RunError(f'put the text into quotation marks: quintet {command} [RUN] "text"')
    return (words[0] if len(words) == 2 else None), words[-1]  # noqa: PLR2004
