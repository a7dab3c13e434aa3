"""How an agent of the protocol is started: by a host program in the pane, which a private file tells what to do."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from quintet.errors import ServerError
from quintet.providers.acp.agents import AcpAgent, Way
from quintet.providers.acp.host_settings import FILE, RECORD, HostSettings, InstructionsBy
from quintet.providers.base import Launch, LaunchPlan
from quintet.providers.turn_events import read_events
from quintet.roles import ROLES

HOST: Final = "quintet.providers.acp.host"
ROLE_FILE: Final = "role.md"
ROLE_FOLDER: Final = "instructions"
_COPILOT_FILE: Final = f"{ROLE_FOLDER}/.github/instructions/role.instructions.md"


class Command(NamedTuple):
    """How an agent's program is started."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """variables to add"""
    files: dict[str, str]
    """what it reads in the terminal's folder"""


def plan(agent: AcpAgent, launch: Launch) -> LaunchPlan:
    """The host's command line, and the file with what it does."""
    role = next((role.name for role in ROLES if role.profile == launch.profile), launch.profile)
    command = agent_command(agent, launch)
    session, opened = (
        find_conversation(launch.previous / RECORD, loads_once=agent.loads_once) if launch.previous else ("", 0.0)
    )
    settings = HostSettings(
        agent.name,
        command.argv,
        role=role,
        instructions=launch.instructions.strip(),
        instructions_by=agent.instructions_by,
        mode=_way(agent, launch).mode,
        model=launch.model or agent.model,
        model_by=agent.model_by,
        asks=launch.asks or sets_permissions(agent, launch.args),
        usage=agent.usage,
        error_prefix=agent.error_prefix,
        note_prefix=agent.note_prefix,
        begins_at_prompt=agent.begins_at_prompt,
        load_in_next_minute=agent.load_in_next_minute,
        session=session,
        session_opened=opened,
    )
    return LaunchPlan(
        argv=(sys.executable, "-P", "-m", HOST, str(launch.folder)),
        env=command.env,
        files=command.files | {FILE: settings.to_json()},
        continues=bool(session),
        programs=tuple(_files_in(command.argv)) if agent.is_own else command.argv[:1],
    )


def agent_command(agent: AcpAgent, launch: Launch) -> Command:
    """How the agent itself is started: its arguments, variables and files."""
    env = {**launch.env, **agent.env}
    way, text, model = _way(agent, launch), launch.instructions.strip(), launch.model or agent.model
    argv = [find_agent(agent, env, launch.cwd), *agent.arguments, *way.arguments]
    if model and agent.model_argument:
        argv += [agent.model_argument, model]
    config: dict[str, Any] = dict(way.config)
    added, files = dict(agent.env), {}
    if text and agent.instructions_by is InstructionsBy.PROGRAM:
        if agent.instructions_argument:
            argv += [agent.instructions_argument, text]
        elif agent.instructions_key:
            files[ROLE_FILE] = text
            config[agent.instructions_key] = [str(launch.folder / ROLE_FILE)]
        else:
            files[_COPILOT_FILE] = f"---\napplyTo: '**'\n---\n{text}\n"
            others = env.get(agent.instructions_variable, "")
            added[agent.instructions_variable] = ",".join(filter(None, (others, str(launch.folder / ROLE_FOLDER))))
    if agent.config_variable:
        config |= {"model": model} if model else {}
        added[agent.config_variable] = _with_config(env.get(agent.config_variable, ""), config)
    return Command((*argv, *launch.args), added, files)


def _files_in(argv: Sequence[str]) -> Iterator[str]:
    """A program and its script, as `python3 /tmp/agent.py`: the words up to the first that is no option but a file."""
    yield argv[0]
    yield from (word for word in argv[1:2] if word.startswith("/") and Path(word).is_file())


def find_agent(agent: AcpAgent, env: Mapping[str, str], cwd: Path) -> str:
    """Where the program is, by the PATH that it will be started with; a path begins at the working directory."""
    named = os.path.expanduser(agent.program)  # noqa: PTH111 - a path would lose a ./ in front
    found = shutil.which(str(cwd / named) if os.sep in named else named, path=env.get("PATH"))
    if found is None:
        advice = f"install it ({agent.install})" if agent.install else f"its name is in providers.{agent.name}.command"
        raise ServerError(f"{agent.program} was not found on PATH; {advice}")
    return found


def sets_permissions(agent: AcpAgent, args: Sequence[str]) -> bool:
    """Whether the user's own arguments say what the agent may do; then they alone count, and a person answers."""
    return any(word.split("=", 1)[0] in agent.permission_options for word in args)


def find_conversation(record: Path, *, loads_once: bool = False) -> tuple[str, float]:
    """The conversation in a record, and when it was opened; an empty name where there is none that had a prompt."""
    session, opened, is_used = "", 0.0, False
    for event in read_events(record):
        if event.get("event") == "session" and isinstance(event.get("id"), str):
            session, at = event["id"], event.get("at")
            opened = float(at) if isinstance(at, int | float) else 0.0
            is_used = event.get("loaded") is True
            session = "" if is_used and loads_once else session
        elif event.get("event") == "begin":
            is_used = True
    return (session, opened) if session and is_used else ("", 0.0)


def _way(agent: AcpAgent, launch: Launch) -> Way:
    if sets_permissions(agent, launch.args):
        return Way()
    return agent.asking if launch.asks else agent.unattended


def _with_config(theirs: str, ours: Mapping[str, Any]) -> str:
    """The user's configuration with ours in it: lists get longer, other values are replaced."""
    try:
        config = json.loads(theirs or "{}")
    except (ValueError, RecursionError):
        return theirs  # the program says by itself what is wrong with it
    if not isinstance(config, dict):
        return theirs
    for key, value in ours.items():
        known = config.get(key)
        config[key] = [*known, *value] if isinstance(known, list) and isinstance(value, list) else value
    return json.dumps(config)
