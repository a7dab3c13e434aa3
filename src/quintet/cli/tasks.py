"""`quintet new` and `quintet lint`: begin a task file, and check one."""

import json
import os
from pathlib import Path

import click

from quintet.config import load_settings
from quintet.config.load import read_task_file
from quintet.errors import ConfigError
from quintet.loop.decide.lint import Finding, lint
from quintet.program import program
from quintet.setup.check_files import lint_checks
from quintet.setup.tasks import new_task


def new(task: tuple[str, ...], wd: Path, output: Path | None) -> None:
    """Write a task file and say what to do with it."""
    path = os.path.relpath(new_task(" ".join(task), wd, output))
    click.echo(f"Written: {path}\n\nNext:\n  fill in its blanks\n  {program()} lint {path}\n  {program()} run {path}")


def lint_file(task_file: Path, as_json: bool) -> int:
    """Print what is wrong with a task file; the exit code is 1 where a run would refuse it."""
    text = read_task_file(task_file)
    findings = lint(text)
    if not any(finding.is_error for finding in findings):
        findings += _unprotected(text)
    errors = sum(finding.is_error for finding in findings)
    if as_json:
        rows = [{"line": one.line, "level": one.level, "text": one.text} for one in findings]
        document = {"file": str(task_file), "errors": errors, "findings": rows}
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return 1 if errors else 0
    for one in findings:
        click.echo(f"{task_file}:{one.line}: {one.level}: {one.text}")
    if not findings:
        click.echo(f"{task_file}: nothing is missing")
    return 1 if errors else 0


def _unprotected(text: str) -> list[Finding]:
    try:
        settings = load_settings(None, os.environ, {}, Path.cwd()).settings
    except ConfigError:
        return []  # the task has nothing to do with it, and every other command says so
    return list(lint_checks(text, settings))
