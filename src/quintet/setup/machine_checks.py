"""What `quintet doctor` checks on the machine: tmux, git, the folder of the sockets, and the agent CLIs."""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from quintet import files, git
from quintet.api.shown import last_lines
from quintet.config import Agent, Settings
from quintet.errors import ConfigError, ServerError
from quintet.layout import user_state_folder
from quintet.loop.run.terminals import ASK
from quintet.providers.base import Launch, LaunchPlan, Login, Provider, StartRefused
from quintet.providers.editor import OWN
from quintet.providers.programs import version_of
from quintet.providers.registry import NOT_TRIED, REGISTERED
from quintet.providers.scripted import SCENARIO_VARIABLE
from quintet.providers.scripted.scenario import load_role_script
from quintet.roles import ROLES
from quintet.sandbox.network.outlets import Outlets
from quintet.server.refusals import BadRequest
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.agent_home import make_agent_home
from quintet.server.terminal.direct_access import tmux_version
from quintet.server.terminal.sandbox import inside_environment, open_terminal_outlet, sandbox_command
from quintet.server.terminal.terminal_spec import TerminalSpec
from quintet.setup.checks import DoctorFinding, failure, ok, warning
from quintet.setup.providers import provider_named
from quintet.setup.sandboxing import agent_sandbox


def check_tmux() -> DoctorFinding:
    try:
        return ok("tmux", f"{tmux_version()} at {shutil.which('tmux')}")
    except ServerError as error:
        return failure("tmux", str(error), "install tmux 3.2 or later")


def check_sockets() -> DoctorFinding:
    """Check the folder of the sockets."""
    try:
        return ok("sockets", f"in {StateFolder().root}")
    except ServerError as error:
        return failure("sockets", str(error), "set XDG_STATE_HOME to a folder of yours")


def check_git(wd: Path) -> DoctorFinding:
    said = (git.answer(Path(os.sep), "--version") or "").removeprefix("git version ")
    if not said:
        return warning("git", "not installed", "install git; without it changes cannot be shown or undone")
    if not git.is_repository(wd):
        return warning("git", f"{said}; {wd} is not a repository", "git init, so that what agents do can be undone")
    return ok("git", said)


def check_agents(env: Mapping[str, str], settings: Settings) -> Iterator[DoctorFinding]:
    """Check each agent CLI that the settings name, and name the others that are installed."""
    needed = {agent.provider for agent in settings.agents.values()}
    for name in (*REGISTERED, *settings.providers):
        provider = provider_named(name, settings)
        if provider is None:
            continue
        program = provider.find(env, settings.wd)
        if not provider.registration.program:
            yield from [_scripted(name, env)] if name in needed else []
        elif name in needed:
            yield _agent(provider, program, env)
        elif program:
            yield ok(name, f"at {program}; the settings do not name it")


def check_starts(env: Mapping[str, str], settings: Settings) -> Iterator[DoctorFinding]:
    """Start each agent CLI with the flags that a run gives it."""
    tried: set[tuple[object, ...]] = set()
    for role, agent in settings.agents.items():
        provider = provider_named(agent.provider, settings)
        same = (agent.provider, agent.model, agent.args)
        if provider is None or same in tried or not provider.find(env, settings.wd):
            continue
        tried.add(same)
        try:
            refused = _try_start(provider, agent, env, settings)
        except (BadRequest, ServerError):  # `check_sandbox` and `check_agents` say so
            continue
        if refused:
            yield failure(agent.provider, f"{role}: it does not start: {last_lines(refused.said)}", refused.mend)


def _try_start(provider: Provider, agent: Agent, env: Mapping[str, str], settings: Settings) -> StartRefused | None:
    """Start an agent CLI where a run would: in a sandbox, if the settings ask for one."""
    place, asks = user_state_folder() / "doctor" / secrets.token_hex(6), settings.permissions == ASK
    folder, sandbox = place / "terminal", agent_sandbox(settings, agent.provider, place / "tmp")
    outlets = Outlets()
    spec = TerminalSpec(provider, agent.profile, "", settings.wd, agent.model, agent.args, sandbox=sandbox)
    try:
        for path in (folder, folder / OWN, place / "tmp"):
            files.make_folder(path)
        home = make_agent_home(folder, provider.registration, env, settings.wd, None) if sandbox else None
        launch = Launch("", agent.profile, "", folder, settings.wd, env, agent.model, agent.args, asks=asks, home=home)
        plan = provider.launch(launch) if sandbox else LaunchPlan(())
        outlet = open_terminal_outlet(outlets, place / "outlet", spec)
        before = tuple(sandbox_command(folder, spec, plan, home, env=env, outlet=outlet))
        return provider.try_flags(replace(launch, env=inside_environment(spec, env), before=before))
    finally:
        outlets.close(place / "outlet")
        outlets.stop()
        shutil.rmtree(place, ignore_errors=True)


def _agent(provider: Provider, program: str | None, env: Mapping[str, str]) -> DoctorFinding:
    name, registration = provider.name, provider.registration
    if program is None:
        advice = registration.install or f"correct the command in providers.{name}, or put it on PATH"
        return failure(name, f"{registration.program} is not on PATH", advice)
    if name not in REGISTERED:
        return ok(name, f"at {program}; an agent of your own")
    release = version_of(program, env)
    if not release and provider.tested[1]:
        return failure(name, f"{program} does not print its version", f"try {program} --version")
    login = provider.login(program, env)
    said = f"{'.'.join(map(str, release)) or 'installed'} at {program}; {login}"
    by_login = f"run {registration.program} once and log in"
    if login is Login.MISSING:
        return failure(name, said, by_login)
    if not provider.tested[1]:
        return warning(name, f"{said}; {NOT_TRIED}", "nothing; if a run gets stuck, look at its terminals")
    oldest, newest = (_numbers(text) for text in provider.tested)
    if release > newest:
        found = f"{said}; newer than the releases that were tested (up to {provider.tested[1]})"
        return warning(name, found, "nothing; if a run gets stuck, try that release")
    if release < oldest:
        found = f"{said}; older than the releases that were tested (from {provider.tested[0]} on)"
        return warning(name, found, registration.install)
    if login is Login.NOT_SEEN:
        return warning(name, said, f"{by_login}, if you have not")
    return ok(name, said)


def _scripted(name: str, env: Mapping[str, str]) -> DoctorFinding:
    scenario = env.get(SCENARIO_VARIABLE, "")
    if scenario and not Path(scenario).is_file():
        return failure(
            name, f"{SCENARIO_VARIABLE}: {scenario} does not exist", "name a scenario file, as an absolute path"
        )
    if not scenario:
        return warning(
            name, "without a script every agent only says: Done.", f"set {SCENARIO_VARIABLE} to a scenario file"
        )
    try:
        for role in ROLES:
            load_role_script(Path(scenario), role.name)
    except ConfigError as error:
        return failure(name, str(error), "correct it")
    return ok(name, f"follows {scenario}")


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
