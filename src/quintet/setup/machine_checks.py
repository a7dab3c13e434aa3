"""What `quintet doctor` checks on the machine: tmux, git, the folder of the sockets, and the agent CLIs."""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from quintet import git
from quintet.api.shown import last_lines
from quintet.config import Settings
from quintet.errors import ConfigError, ServerError
from quintet.loop.run.terminals import ASK
from quintet.providers.base import Launch, Login, Provider
from quintet.providers.programs import version_of
from quintet.providers.registry import REGISTERED, find_provider
from quintet.providers.scripted import SCENARIO_VARIABLE
from quintet.providers.scripted.scenario import load_role_script
from quintet.roles import ROLES
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.direct_access import tmux_version
from quintet.setup.checks import DoctorFinding, failure, ok, warning


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


def check_agents(env: Mapping[str, str], needed: Collection[str]) -> Iterator[DoctorFinding]:
    """Check each agent CLI; those that the settings name must be installed."""
    for name in REGISTERED:
        provider = find_provider(name)
        if provider is None:
            continue
        if provider.registration.program:
            yield _agent(provider, env, is_needed=name in needed)
        elif name in needed:
            yield _scripted(name, env)


def check_starts(env: Mapping[str, str], settings: Settings) -> Iterator[DoctorFinding]:
    """Start each agent CLI with the flags that a run gives it."""
    tried: set[tuple[object, ...]] = set()
    for role, agent in settings.agents.items():
        provider = find_provider(agent.provider)
        same = (agent.provider, agent.model, agent.args)
        if (
            provider is None
            or same in tried
            or not shutil.which(provider.registration.program or "-", path=env.get("PATH"))
        ):
            continue
        tried.add(same)
        asks = settings.permissions == ASK
        launch = Launch("", agent.profile, "", settings.wd, settings.wd, env, agent.model, agent.args, asks=asks)
        if refused := provider.try_flags(launch):
            yield failure(agent.provider, f"{role}: it does not start: {last_lines(refused.said)}", refused.mend)


def _agent(provider: Provider, env: Mapping[str, str], *, is_needed: bool) -> DoctorFinding:
    program = shutil.which(provider.registration.program, path=env.get("PATH"))
    if not is_needed:
        return ok(provider.name, f"{f'at {program}' if program else 'not installed'}; the settings do not name it")
    if program is None:
        return failure(provider.name, f"{provider.registration.program} is not on PATH", provider.registration.install)
    release = version_of(program, env)
    if not release:
        return failure(provider.name, f"{program} does not print its version", f"try {program} --version")
    login = provider.login(program, env)
    said = f"{'.'.join(map(str, release))} at {program}; {login}"
    by_login = f"run {provider.registration.program} once and log in"
    if login is Login.MISSING:
        return failure(provider.name, said, by_login)
    oldest, newest = (_numbers(text) for text in provider.tested)
    if release > newest:
        found = f"{said}; newer than the releases that were tested (up to {provider.tested[1]})"
        return warning(provider.name, found, "nothing; if a run gets stuck, try that release")
    if release < oldest:
        found = f"{said}; older than the releases that were tested (from {provider.tested[0]} on)"
        return warning(provider.name, found, provider.registration.install)
    if login is Login.NOT_SEEN:
        return warning(provider.name, said, f"{by_login}, if you have not")
    return ok(provider.name, said)


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
