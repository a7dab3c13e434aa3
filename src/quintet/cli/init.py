"""`quintet init`: a project made ready for its first task."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from quintet import git
from quintet.config import Settings, load_settings
from quintet.config.table import OWN_PROVIDERS, WORKTREE
from quintet.errors import ConfigError, RunError
from quintet.program import program
from quintet.prose import hanging, plural
from quintet.providers.registration import OpenSpecTool
from quintet.providers.registry import untried_providers
from quintet.setup import openspec
from quintet.setup.init_files import LEFT, WRITTEN, installed_agents, write_init_files
from quintet.setup.permissions import agent_permissions


def init(wd: Path, provider: str | None, with_openspec: bool | None, yes: bool) -> None:
    """Say what is installed, write what is missing, set OpenSpec up on request, and say what comes next."""
    agents = installed_agents(os.environ)
    for name in OWN_PROVIDERS:
        if name in agents:
            _tell("found", f"{name}: {agents[name]}")
    tried = (name for name in OWN_PROVIDERS if name in agents and name not in untried_providers())
    chosen = provider or next(tried, OWN_PROVIDERS[0])
    if not agents:
        _tell("not found", f"any agent CLI; {program()} doctor says how to install one")
    acts = list(write_init_files(wd, chosen))
    for act in acts:
        _tell(act.what, f"{act.path}{f' ({act.note})' if act.note else ''}")
    settings = _settings(wd)
    named = {agent.provider for agent in settings.agents.values()}
    tools = {name: tool for name, tool in openspec.tools_of(settings).items() if name in {chosen, *agents, *named}}
    changed = _openspec(wd, tools, with_openspec, yes)
    if not changed and not any(act.is_change for act in acts):
        click.echo("\nNothing was changed.")
    _tell_permissions(wd)
    _tell_next(wd)


def _tell_next(wd: Path) -> None:
    """What to do now; a run in a worktree begins at the last commit, so what was written has to be in it."""
    click.echo("\nNext:")
    if _settings(wd).workspace_mode == WORKTREE and git.answer(wd, "status", "--porcelain", "--", "."):
        click.echo("  git add . && git commit")
    click.echo(f'  {program()} new "what you want, in one line"\n  {program()} doctor')


def _tell_permissions(wd: Path) -> None:
    """What the agents will be allowed to do, by the settings that are there now."""
    if found := agent_permissions(_settings(wd)):
        told = f"{found.summary}. {found.change}".strip(". ")
        click.echo("\n" + hanging("", f"{told[0].upper()}{told[1:]}."))


def _settings(wd: Path) -> Settings:
    try:
        return load_settings(None, os.environ, {"wd": str(wd)}, wd).settings
    except ConfigError:  # doctor says what is wrong with them
        return Settings()


def _tell(what: str, text: str) -> None:
    click.echo(hanging(f"  {what:<14} ", text))


def _openspec(wd: Path, tools: Mapping[str, OpenSpecTool], wished: bool | None, yes: bool) -> bool:
    """Set OpenSpec up where it is missing and wished for; whether anything was done."""
    missing = openspec.missing_workflows(wd, tools)
    if openspec.is_set_up(wd) and not missing:
        _tell(LEFT, "openspec/ (set up, with all workflows that the prompts use)")
        return False
    names = ", ".join(tools)
    if wished is False or not (names or wished):
        return False
    if not openspec.version():
        _tell("not found", f"openspec; {openspec.INSTALL}, then {program()} init again")
        return False
    if wished is None and not yes:
        if not sys.stdin.isatty():
            _tell("left out", f"OpenSpec; {program()} init --openspec sets it up")
            return False
        if not click.confirm(
            f"Set up OpenSpec for {names}? The analyst writes its specifications with it", default=True
        ):
            return False
    added = openspec.set_up(wd, tools.values())
    if left := openspec.missing_workflows(wd, tools):
        told = "; ".join(f"{', '.join(ones)} for {name}" for name, ones in left.items())
        raise RunError(f"OpenSpec has not set up {told}; its releases from 1.13 on do: {openspec.INSTALL}")
    _tell(WRITTEN, f"openspec/, {plural(len(added), 'file')} with those for {names or 'no agent'} (explore, ff, apply)")
    return bool(added)
