"""`quintet run --dry-run`: the plan and the first prompt, for people and for programs."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from quintet.cli.options import task_on_command_line
from quintet.config import Settings, find_config
from quintet.loop.decide.checks import all_checks
from quintet.loop.decide.steps import Ask
from quintet.loop.decide.task import title_of
from quintet.loop.run.fixed_settings import load_run_settings
from quintet.loop.run.plan import FirstStep, plan
from quintet.prose import hanging, plural
from quintet.roles import ROLES
from quintet.setup.permissions import agent_permissions
from quintet.workspace.creating import find_base
from quintet.workspace.repository import repository_of


def show_plan(config_file: Path | None, flags: dict[str, Any], as_json: bool, *, reload: bool = False) -> None:
    """Print what a run would do; nothing is written and nothing is started."""
    named = task_on_command_line(flags)
    loaded = load_run_settings(config_file, os.environ, flags, Path.cwd(), reload=reload)
    settings = loaded.settings
    if settings.needs_worktree:  # a run that is unfinished here is another one
        settings = replace(settings, resume=False)
    found = plan(settings, named)
    config = config_file or find_config(os.environ, flags, Path.cwd())
    rows = _rows(settings, found, config)
    if as_json:
        role = found.step.role.name if isinstance(found.step, Ask) else None
        click.echo(json.dumps({"plan": dict(rows), "role": role, "prompt": found.prompt}, ensure_ascii=False, indent=2))
        return
    click.echo("The plan. Nothing is started.\n")
    for name, text in rows:
        click.echo(hanging(f"  {name:<11} ", text))
    if isinstance(found.step, Ask):
        click.echo(f"\nThe first prompt goes to {found.step.role}, {len(found.prompt)} characters:\n")
        click.echo("".join(f"  | {line}\n" for line in found.prompt.splitlines()), nl=False)
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)


def _rows(settings: Settings, found: FirstStep, config: Path | None) -> list[tuple[str, str]]:
    task = "that of the saved run" if found.resumes else settings.prompt_file or "the setting prompt"
    after = [
        *(["the OpenSpec change is archived"] if settings.post_openspec_archive else []),
        *(["the work tree is committed"] if settings.commits else []),
    ]
    checks = ", ".join(check.words for check in all_checks(found.task, settings))
    return [
        ("project", str(settings.wd)),
        *_workspace(settings),
        ("settings", str(config) if config else "no config file; defaults, variables and options"),
        ("task", f"{task}: {title_of(found.task)}"),
        (
            "run",
            f"goes on with {found.resumes} at {_step(found)}" if found.resumes else f"new, begins at {_step(found)}",
        ),
        ("agents", ", ".join(_agent(settings, role.name) for role in ROLES)),
        *_permissions(settings),
        ("limits", _limits(settings)),
        ("terminals", f"at the server {settings.api}" if settings.api else "of the run's own, in tmux"),
        ("verified", f"a PASS counts only if these agree: {checks}" if checks else "no"),
        ("after PASS", " and ".join(after) or "nothing more"),
    ]


def _workspace(settings: Settings) -> list[tuple[str, str]]:
    if settings.workspace.is_worktree:
        return [("workspace", f"{settings.workspace.tree}, on the branch {settings.workspace.branch}")]
    if not settings.needs_worktree:
        return []
    base = find_base(repository_of(settings.wd), settings)
    return [("workspace", f"a new worktree at {settings.workspace_base or 'HEAD'} ({base[:12]}), on a new branch")]


def _permissions(settings: Settings) -> list[tuple[str, str]]:
    found = agent_permissions(settings)
    return [("permissions", f"{found.summary}{f' ({found.change})' if found.change else ''}")] if found else []


def _step(found: FirstStep) -> str:
    if isinstance(found.step, Ask):
        return f"{found.step.role}, round {found.step.round}, cycle {found.step.cycle}"
    return "its last command"


def _agent(settings: Settings, name: str) -> str:
    agent = settings.agents[name]
    return f"{name} {agent.provider}{f' ({agent.model})' if agent.model else ''}"


def _limits(settings: Settings) -> str:
    least, most = settings.min_review_cycles_before_approval, settings.max_review_cycles
    tokens = f", {settings.max_tokens} tokens" if settings.max_tokens else ""
    most_work = f"{plural(settings.max_rounds, 'round')}; {plural(most, 'review')} a phase"
    return f"{most_work}, approval from review {max(least, 1)} on{tokens}"
