"""The commands around a run: init, new, lint, doctor, clean."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from quintet.cli.hanging import hanging
from quintet.cli.options import SettingsCommand, config_argument, setting_options
from quintet.cli.status import wd_option
from quintet.config.table import OWN_PROVIDERS
from quintet.program import program


@click.command("init")
@wd_option
@click.option("--provider", type=click.Choice(OWN_PROVIDERS), help="The agent CLI to write down; else the first found.")
@click.option("--openspec/--no-openspec", "with_openspec", default=None, help="Set OpenSpec up, or leave it out.")
@click.option("--yes", is_flag=True, help="Ask nothing: set OpenSpec up where it is missing.")
def init_command(wd: Path, provider: str | None, with_openspec: bool | None, yes: bool) -> None:
    """Make a project ready: quintet.json, its schema, a task template, OpenSpec.

    What is there already stays as it is.
    """
    from quintet.cli.init import init  # noqa: PLC0415 - each command loads only what it needs

    init(wd, provider, with_openspec, yes)


@click.command("new")
@click.argument("task", nargs=-1, metavar="TASK")
@wd_option
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="The file; else tasks/NAME.md.")
def new_command(task: tuple[str, ...], wd: Path, output: Path | None) -> None:
    """Begin a task file from one line that says what you want."""
    from quintet.setup.tasks import new_task  # noqa: PLC0415

    path = os.path.relpath(new_task(" ".join(task), wd, output))
    click.echo(f"Written: {path}\n\nNext:\n  fill in its blanks\n  {program()} lint {path}\n  {program()} run {path}")


@click.command("lint")
@click.argument("task_file", metavar="TASK.md", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def lint_command(task_file: Path, as_json: bool) -> None:
    """Say what a task file lacks. An error (exit code 1) is what a run refuses."""
    from quintet.config.load import read_task_file  # noqa: PLC0415
    from quintet.loop.decide.lint import lint  # noqa: PLC0415

    findings = lint(read_task_file(task_file))
    errors = sum(finding.is_error for finding in findings)
    if as_json:
        told = [{"line": one.line, "level": one.level, "text": one.text} for one in findings]
        click.echo(
            json.dumps({"file": str(task_file), "errors": errors, "findings": told}, ensure_ascii=False, indent=2)
        )
    else:
        for one in findings:
            click.echo(f"{task_file}:{one.line}: {one.level}: {one.text}")
        if not findings:
            click.echo(f"{task_file}: nothing is missing")
    sys.exit(1 if errors else 0)


@click.command("doctor", cls=SettingsCommand)
@config_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@setting_options
def doctor_command(config_file: Path | None, as_json: bool, **flags: Any) -> None:
    """Look for what would keep a run from starting (exit code 1), and say how to mend it."""
    from quintet.setup.checks import Level  # noqa: PLC0415
    from quintet.setup.doctor import examine  # noqa: PLC0415

    checks = list(examine(os.environ, flags, config_file, Path.cwd()))
    failures = sum(check.level is Level.FAILURE for check in checks)
    if as_json:
        told = [{"name": one.name, "level": one.level, "found": one.found, "mend": one.mend} for one in checks]
        click.echo(json.dumps({"can_run": not failures, "checks": told}, ensure_ascii=False, indent=2))
        sys.exit(1 if failures else 0)
    for one in checks:
        click.echo(hanging(f"{one.level:<8} {one.name:<12} ", one.found))
        if one.mend:
            click.echo(hanging(f"{'':<21} -> ", one.mend))
    click.echo("\nA run can start." if not failures else "\nA run could not start.")
    sys.exit(1 if failures else 0)


@click.command("clean")
@wd_option
@click.option("--terminals", is_flag=True, help="Also end terminals whose run has ended, in all projects.")
@click.option("--runs", is_flag=True, help="Also remove the folders of this project's old runs.")
@click.option("--keep", default=1, show_default=True, type=click.IntRange(0), help="With --runs: how many newest stay.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clean_command(*, wd: Path, terminals: bool, runs: bool, keep: int, dry_run: bool, yes: bool) -> None:
    """Remove what old runs have left: dead sockets and the folders of terminals that are gone.

    A run that is at work or could go on loses nothing.
    """
    from quintet.cli.clean import clean  # noqa: PLC0415
    from quintet.setup.leftovers import dead_terminals, dead_word, ended_sessions, old_runs  # noqa: PLC0415

    found = [
        *(ended_sessions() if terminals else ()),
        *dead_terminals(),
        *dead_word(wd),
        *(old_runs(wd, keep) if runs else ()),
    ]
    more = not terminals and any(True for _ in ended_sessions())
    clean(found, dry_run=dry_run, yes=yes)
    if more:
        click.echo(f"Terminals of runs that have ended live on; {program()} clean --terminals ends them.")
