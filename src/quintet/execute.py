"""Carry out a run from its settings to its report: the one way to start a run for a command, a worker and a test."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from quintet.api.client import ApiClient
from quintet.config import Settings
from quintet.config.load import Loaded
from quintet.layout import DISCOVERY, run_folder
from quintet.loop.decide.state import Status
from quintet.loop.journal import Event, Noted, Warned
from quintet.loop.record.store import Listener
from quintet.loop.run.choose_workspace import open_workspace
from quintet.loop.run.clock import Clock, RealClock
from quintet.loop.run.connection import Connect
from quintet.loop.run.driver import Driver
from quintet.loop.run.plan import check_settings
from quintet.own_programs import distrust
from quintet.providers.registry import NOT_TRIED, untried_providers
from quintet.providers.scripted import SCENARIO_VARIABLE, SCRIPTED
from quintet.server.http.client import client_for
from quintet.setup.permissions import agent_permissions
from quintet.setup.running_projects import registered
from quintet.setup.sandboxing import refuse_without_sandbox
from quintet.watch.report.write_report import write_report


@dataclass(frozen=True)
class RunSpec:
    """What a run is started with."""

    settings: Settings
    warnings: Sequence[str] = ()
    """doubts about the settings, for the journal"""
    listeners: Sequence[Listener] = ()
    """each gets every event of the run"""
    named_task: str = ""
    """the task as the user has named it; where none is named, an unfinished run goes on without a question"""
    clock: Clock = RealClock()
    loaded: Loaded | None = None
    """where the settings came from, so that a run which is resumed finds them again"""
    reload: bool = False
    """whether a run that goes on takes its settings and prompt texts as they are now"""
    connect: Connect | None = None
    """how the terminal server is reached; by default the one at `settings.api`, else one that the run brings along"""


@dataclass(frozen=True)
class Result:
    """How a run has ended."""

    exit_code: int
    status: Status
    """RUNNING where it was stopped; the next start goes on with it"""
    reason: str = ""
    """why it was stopped"""
    run_id: str = ""
    """empty where it was stopped before it had begun"""
    folder: Path | None = None
    """the archive of the run"""
    report: Path | None = None
    """the report for a browser"""
    report_error: str = ""
    """why there is no report"""
    session: str = ""
    """the session of its terminals"""
    api: str = ""
    """the server that the terminals are on; empty where it was the run's own"""


def prepare(settings: Settings) -> Settings:
    """Refuse what keeps a run from starting, then make its worktree where it needs one.

    For whoever has to know the work tree before the run starts; for what is prepared already it does nothing more.
    """
    distrust(settings.workspace.tree, settings.workspace.project, *_written(settings))
    check_settings(settings)
    refuse_without_sandbox(settings)
    return open_workspace(settings)


def _written(settings: Settings) -> list[Path]:
    """What agents may write to beside the work tree."""
    return [settings.workspace.tree / Path(path).expanduser() for path in settings.sandbox_write]


def execute(spec: RunSpec) -> Result:
    """Carry a task to its end, or go on with the saved run, and write the report.

    A QuintetError is raised for what keeps a run from starting; whatever stops it later is in the result.
    """
    settings = prepare(spec.settings)
    with registered(settings.workspace.tree), ExitStack() as servers:
        connect = spec.connect or partial(_connect, settings, servers)
        early: list[Event] = [
            Warned(text=text) for text in (*spec.warnings, *_missing_script(settings), *_untried(settings))
        ]
        early += [Noted(text=text) for text in _permissions(settings)]
        code, state, reason = Driver(
            settings, connect, spec.listeners, spec.clock, spec.named_task, early, spec.loaded, spec.reload
        ).run()
        result = Result(code, state.final_status, reason, state.run_id, session=state.session_name, api=state.api)
        return _with_report(result, settings.workspace.tree) if result.run_id else result


def _with_report(result: Result, wd: Path) -> Result:
    """Write the report. The outcome of a run does not depend on it."""
    folder = run_folder(wd, result.run_id)
    try:
        return replace(result, folder=folder, report=write_report(folder, at_end=True)[1])
    except OSError as error:
        return replace(result, folder=folder, report_error=str(error))


def _permissions(settings: Settings) -> Iterator[str]:
    """What the agents may do, and how to change that."""
    if found := agent_permissions(settings):
        yield from filter(None, (found.summary, found.change))


def _missing_script(settings: Settings) -> Iterator[str]:
    """A warning where scripted agents have no script: they would give the same reply for hours."""
    if os.environ.get(SCENARIO_VARIABLE) or settings.api:
        return
    names = [
        name
        for name, agent in settings.agents.items()
        if agent.provider == SCRIPTED.name and "--scenario" not in agent.args
    ]
    if names:
        yield f"{', '.join(names)}: without a script they say only: Done.; set {SCENARIO_VARIABLE} to a scenario file"


def _untried(settings: Settings) -> Iterator[str]:
    """A warning where an agent is used that nobody has tried with Quintet."""
    named = {agent.provider for agent in settings.agents.values()} - settings.providers.keys()
    for name in sorted(named & set(untried_providers())) if not settings.api else ():
        yield f"{name} {NOT_TRIED}"


def _connect(
    settings: Settings, servers: ExitStack, api: str, sessions: Sequence[str], warn: Callable[[str], None]
) -> ApiClient:
    """A client of the server at the address; without an address, of a server that is started for this run."""
    wd = settings.workspace.tree
    if api:
        return client_for(api, str(wd), None if api == settings.api else warn)
    from quintet.server.http.embedded import EmbeddedServer  # noqa: PLC0415 - half a second that a run with `api` saves
    from quintet.watch.dashboard.routes import DashboardRoutes  # noqa: PLC0415

    pages = DashboardRoutes(lambda: [wd], lasting=False)
    server = servers.enter_context(EmbeddedServer(sessions, discovery=wd / DISCOVERY, pages=pages))
    return ApiClient(server.url, str(wd), token=server.token)
