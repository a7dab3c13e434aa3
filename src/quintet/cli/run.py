"""`quintet run`: read the settings, show the run while it goes on, and say what to do next."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from quintet.cli.dry_run import show_plan
from quintet.cli.options import config_and_task, only_task, task_on_command_line
from quintet.config import Settings
from quintet.config.table import WORKTREE
from quintet.execute import Result, RunSpec, execute, prepare
from quintet.loop.decide.task import title_of
from quintet.loop.journal import Event, RunResumed
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import read_saved
from quintet.loop.run.fixed_settings import load_run_settings
from quintet.prose import for_stream
from quintet.watch.console.console import RunConsole, open_console
from quintet.watch.console.pass_screen import pass_screen
from quintet.watch.runs.summary import summarise


def run_command(
    files: tuple[Path, ...], *, dry_run: bool, worktree: bool, reload: bool, plain: bool, as_json: bool, **flags: Any
) -> int:
    """Tell the two files apart, and run or show the plan."""
    config_file, task_file = config_and_task(files)
    if worktree:
        flags["workspace_mode"] = WORKTREE
    if task_file is not None:
        flags["prompt_file"] = only_task(task_file, flags["prompt_file"])
    if dry_run:
        show_plan(config_file, flags, as_json, reload=reload)
        return 0
    return run(config_file, flags, plain=plain, as_json=as_json, reload=reload).exit_code


def run(
    config_file: Path | None,
    flags: Mapping[str, Any],
    env: Mapping[str, str] = os.environ,
    *,
    plain: bool = False,
    as_json: bool = False,
    with_pass_screen: bool = True,
    reload: bool = False,
) -> Result:
    """Carry out a run and show it; `with_pass_screen`: after a PASS say what to do next.

    `reload`: a run that goes on takes its config file and prompt texts as they are now.
    """
    named = task_on_command_line(flags)
    loaded = load_run_settings(config_file, env, flags, Path.cwd(), reload=reload)
    os.environ.pop("QUEUE", None)  # it may hold a password, and agents, checks and hooks inherit what is left
    loaded = replace(loaded, settings=prepare(loaded.settings))
    settings = loaded.settings
    with open_console(
        settings.workspace.tree,
        plain=plain,
        as_json=as_json,
        must_go_on=True,
        progress_seconds=settings.progress_seconds,
        pass_screen_follows=with_pass_screen,
    ) as show:
        show.title(title_of(settings.prompt))

        def listen(event: Event) -> None:
            if isinstance(event, RunResumed):
                _show_earlier(show, settings, event.run_id)
            show(event)

        spec = RunSpec(settings, loaded.warnings, [listen], named, loaded=loaded, reload=reload)
        result = execute(spec)
    if result.report_error:
        click.echo(for_stream(f"warning: no report: {result.report_error}", sys.stderr), err=True)
    if result.folder and result.report and not as_json:
        if with_pass_screen and result.exit_code == 0:
            click.echo(f"\n{pass_screen(summarise(result.folder), result.report, api=result.api)}")
        elif sys.stdout.isatty():
            click.echo(f"The report is {result.report}")
    return result


def _show_earlier(show: RunConsole, settings: Settings, run_id: str) -> None:
    """Show the title and the earlier events of a run that is continued."""
    saved = read_saved(settings.state_file, settings.workspace.tree).state
    if saved and saved.prompt.strip():
        show.title(title_of(saved.prompt))
    show.earlier(list(Journal.of(RunRecord(settings.workspace.tree, run_id)).read())[:-1])
