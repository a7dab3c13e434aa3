"""`quintet draft`: let an agent write a task file, and say what is left to do."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click

from quintet.config import load_settings
from quintet.errors import TaskError
from quintet.loop.decide.task import title_of
from quintet.loop.record.signals import Interrupted
from quintet.program import program
from quintet.setup.drafting import TaskDraft, draft_task, read_wish
from quintet.setup.tasks import free_task_path, write_task


def draft(wish: tuple[str, ...], source: Path | None, issue: str, output: Path | None, wd: Path) -> int:
    """Write the draft; with a terminal it is shown, and can be started or edited with one key."""
    if output and output.exists():  # before an agent has worked for it
        raise TaskError(f"{output}: exists already; choose another name with --output")
    text = read_wish(wish, source, issue, wd, _standard_input)
    settings = load_settings(None, os.environ, {"wd": str(wd)}, wd).settings
    try:
        made = draft_task(text, settings, lambda line: click.echo(line, err=True))
    except Interrupted as interrupt:
        return interrupt.exit_code
    path = write_task(made.text, "", wd, output or free_task_path(title_of(made.text), wd))
    shown = os.path.relpath(path)
    if sys.stdout.isatty():
        click.echo_via_pager(made.text)
    click.echo(f"Written: {shown}")
    for title in made.fails_today:
        click.echo(f"{shown}: {title} fails today, as it should")
    for finding in made.findings:
        click.echo(f"{shown}:{finding.line}: {finding.level}: {finding.text}")
    for doubt in made.doubts:
        click.echo(f"{shown}: warning: {doubt}")
    can_start = not any(finding.is_error for finding in made.findings)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _offer(path, can_start=can_start)
    _say_next(made, shown, can_start=can_start)
    return 0


def _standard_input() -> str:
    return "" if sys.stdin.isatty() else sys.stdin.read()


def _say_next(made: TaskDraft, path: str, *, can_start: bool) -> None:
    steps = ["read it"] if can_start else ["fill in its blanks"]
    steps += [] if made.findings else [f"{program()} lint {path}"]
    click.echo("\n  ".join(["\nNext:", *steps, f"{program()} run {path}"]))


def _offer(path: Path, *, can_start: bool) -> int:
    """Start or edit the task with one key."""
    click.echo(
        "\nr starts it, e edits it, any other key leaves it." if can_start else "\ne edits it, any other key leaves it."
    )
    key = click.getchar()
    if key == "e":
        click.edit(filename=str(path))
    elif key == "r" and can_start:
        return subprocess.run([*shlex.split(program()), "run", str(path)], check=False).returncode
    return 0
