"""What `quintet doctor` checks: first the machine, then the project, its task and its run."""

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from quintet import __version__
from quintet.api.quintet_backend import backend_of
from quintet.config import Settings, find_config, load_settings
from quintet.config.table import WORKTREE
from quintet.errors import ApiError, ConfigError, ProfileError, Refused, RunError, ServerError, StateError
from quintet.layout import CONFIG_FILE
from quintet.loop.decide.checks import all_checks
from quintet.loop.decide.lint import lint
from quintet.loop.decide.prompts.own import faults_of
from quintet.loop.decide.state import Status
from quintet.loop.record.lock import worker
from quintet.loop.record.saved_state import read_saved
from quintet.loop.run.resume import not_resumable_reason
from quintet.loop.run.terminals import NO_OWN_AGENTS
from quintet.program import program
from quintet.server.http.client import client_for
from quintet.server.profiles import load_profile
from quintet.setup import openspec
from quintet.setup.check_files import advice, unprotected
from quintet.setup.checks import DoctorFinding, Level, failure, ok, warning
from quintet.setup.leftovers import count_leftovers
from quintet.setup.machine_checks import check_agents, check_git, check_sockets, check_starts, check_tmux
from quintet.setup.permissions import agent_permissions
from quintet.setup.sandboxing import check_allow_list, check_sandbox
from quintet.workspace.creating import find_base
from quintet.workspace.repository import repository_of


def examine(
    env: Mapping[str, str], flags: Mapping[str, Any], config_file: Path | None, cwd: Path
) -> Iterator[DoctorFinding]:
    """Run all checks. What another server does itself is not checked here."""
    yield ok("quintet", f"{__version__}, Python {platform.python_version()} at {sys.executable}")
    try:
        settings = load_settings(config_file, env, flags, cwd).settings
    except ConfigError as error:
        yield check_tmux()
        yield failure("settings", str(error), f"correct it; {program()} config shows what is in effect")
        return
    if settings.api:
        yield _server(settings)
    else:
        yield check_tmux()
        yield check_sockets()
    yield check_git(settings.wd)
    yield _settings(config_file or find_config(env, flags, cwd))
    if not settings.api:
        yield from check_agents(env, settings)
        yield from check_starts(env, settings)
        yield from _profiles(settings)
    yield from _permissions(settings)
    yield check_sandbox(settings)
    yield from check_allow_list(settings)
    yield from _prompts(settings)
    yield _project(settings)
    yield from _workspace(settings)
    yield from _openspec(settings)
    yield from _task(settings)
    yield from _checks(settings)
    yield _run(settings)
    yield _leftovers(settings)


def _settings(found: Path | None) -> DoctorFinding:
    if found is None:
        return warning(
            "settings",
            f"no {CONFIG_FILE}; defaults, variables and options apply",
            f"{program()} init writes one",
        )
    return ok("settings", str(found))


def _server(settings: Settings) -> DoctorFinding:
    api = settings.api
    try:
        client = client_for(api, "")
    except ServerError as error:
        return failure("server", str(error), f"remove the file, then start {program()} serve again")
    try:
        backend = backend_of(client)
        backend.check_token()
        if settings.own_agents and not backend.takes_own_agents:
            told = f"{', '.join(settings.own_agents)}: {NO_OWN_AGENTS}"
            return failure("server", told, "unset API: a run then starts its own server")
    except Refused as error:
        return failure("server", str(error), "run as the user who started it, or set QUINTET_TOKEN")
    except ApiError as error:
        return failure("server", str(error), "start it, or unset API: a run then starts its own server")
    finally:
        client.close()
    return ok("server", f"{api} answers")


def _profiles(settings: Settings) -> Iterator[DoctorFinding]:
    for role, agent in settings.agents.items():
        try:
            load_profile(agent.profile)
        except ProfileError as error:
            yield failure("profiles", f"agents.{role}.profile: {error}", f"{program()} profiles list shows them")


def _permissions(settings: Settings) -> Iterator[DoctorFinding]:
    if found := agent_permissions(settings):
        yield DoctorFinding("permissions", Level.OK, found.summary, found.change)


def _prompts(settings: Settings) -> Iterator[DoctorFinding]:
    if not settings.prompts_dir:
        return
    faults = list(faults_of(settings.prompts_dir))
    for fault in faults:
        yield failure("prompts", fault, f"{program()} prompts show NAME prints the shipped text")
    if not faults:
        yield ok("prompts", f"your own ones in {settings.prompts_dir}")


def _project(settings: Settings) -> DoctorFinding:
    if not os.access(settings.wd, os.R_OK | os.W_OK | os.X_OK):
        return failure("project", f"{settings.wd} is not writable", "make it writable")
    return ok("project", str(settings.wd))


def _workspace(settings: Settings) -> Iterator[DoctorFinding]:
    if settings.workspace_mode != WORKTREE:
        return
    try:
        base = find_base(repository_of(settings.wd), settings)
    except RunError as error:
        yield failure("workspace", str(error), "WORKSPACE=tree lets the agents work in the project itself")
    else:
        yield ok("workspace", f"a worktree for each run, at {settings.workspace_base or 'HEAD'} ({base[:12]})")


def _openspec(settings: Settings) -> Iterator[DoctorFinding]:
    release = openspec.version()
    if not release:
        yield warning("openspec", "not installed; the analyst needs it", openspec.INSTALL)
        return
    named = {agent.provider for agent in settings.agents.values()}
    tools = {name: tool for name, tool in openspec.tools_of(settings).items() if name in named}
    missing = openspec.missing_workflows(settings.wd, tools)
    if not openspec.is_set_up(settings.wd):
        yield warning("openspec", f"{release}; not set up in this project", f"{program()} init --openspec")
    elif missing:
        names = "; ".join(f"{', '.join(ones)} for {name}" for name, ones in missing.items())
        yield warning("openspec", f"{release}; missing workflows: {names}", f"{program()} init --openspec")
    else:
        yield ok("openspec", f"{release}, set up in this project")


def _task(settings: Settings) -> Iterator[DoctorFinding]:
    if not settings.prompt.strip():
        yield ok("task", f'none in the settings; {program()} run TASK.md names one, {program()} new "..." begins one')
        return
    source = settings.prompt_file or "the setting prompt"
    findings = lint(settings.prompt)
    for finding in findings:
        found = f"{source}, line {finding.line}: {finding.text}"
        bad = failure if finding.is_error else warning
        yield bad("task", found, f"correct it; {program()} lint {settings.prompt_file or 'TASK.md'} looks again")
    if not findings:
        yield ok("task", source)


def _checks(settings: Settings) -> Iterator[DoctorFinding]:
    """Where a check of the task or the project's command names a file that agents may change."""
    found = unprotected(all_checks(settings.prompt, settings), settings)
    if found:
        names = f"the checks name {', '.join(found)}, which agents may change"
        yield warning("checks", names, f"if they rely on it: {advice(found.values())}")


def _run(settings: Settings) -> DoctorFinding:
    if who := worker(settings.wd):
        told = f"one is running here ({who})"
        return failure("run", told, f"{program()} watch shows it; another can start when it has ended")
    try:
        saved = read_saved(settings.state_file, settings.wd, settings.provider).state
    except StateError as error:
        return _no_resume(settings, str(error)) or warning("run", str(error), "nothing; the next run moves it away")
    reason = not_resumable_reason(saved, settings.wd)
    if refused := _no_resume(settings, reason):
        return refused
    if saved is None:
        return ok("run", "none yet")
    if saved.final_status is not Status.RUNNING:
        return ok("run", f"the last one, {saved.run_id}, ended with {saved.final_status}")
    if reason:
        return warning("run", reason, "nothing; the next run starts from the beginning")
    why = f": {saved.last_error}" if saved.last_error else ""
    return warning(
        "run", f"{saved.run_id} is unfinished{why}", f"{program()} run resumes it; RESUME=0 starts a new one"
    )


def _no_resume(settings: Settings, reason: str) -> DoctorFinding | None:
    """A failure where the settings demand a resume and there is nothing to resume."""
    return failure("run", f"cannot resume: {reason}", "unset RESUME") if settings.resume and reason else None


def _leftovers(settings: Settings) -> DoctorFinding:
    dead, ended = count_leftovers(settings.wd)
    if ended:
        found = f"the terminals of {ended} ended run{'s' if ended > 1 else ''} are still open"
        return warning("leftovers", found, f"{program()} clean --terminals lists and ends them")
    if dead:
        return warning("leftovers", f"{dead} files of old runs", f"{program()} clean lists and removes them")
    return ok("leftovers", "none")
