"""The parameters that create a terminal, checked before anything is started."""

import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from fastapi import Query

from quintet.api.models import MAX_MESSAGE, CreateBody, OwnAgent, Sandbox, TerminalId
from quintet.errors import ProfileError
from quintet.providers.base import Provider
from quintet.providers.registry import OWN_NAME, find_provider, own_provider, provider_names
from quintet.sandbox.network.rules import AllowList
from quintet.server.names import PREFIX, profile_name, session_name
from quintet.server.profiles import load_profile
from quintet.server.refusals import BadRequest, TooLong
from quintet.server.terminal.input import without_control_characters
from quintet.server.terminal.terminal_spec import TerminalSpec
from quintet.variables import is_variable

_MODEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@\[\]-]{0,127}")
_OWN_NAME = re.compile(OWN_NAME)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
DEFAULT_PROVIDER: Final = provider_names()[0]
LONGEST_ARGUMENT: Final = 4096
MOST_ARGUMENTS: Final = 64

Arguments = Annotated[list[str], Query(description="the user's own arguments for the agent's program")]

Permissions = Annotated[
    Literal["unattended", "ask"], Query(description="ask: the agent asks before it acts, as its user's settings say")
]


Continues = Annotated[
    TerminalId | None, Query(description="a lost terminal, whose conversation goes on where the program can do that")
]


def terminal_spec(  # noqa: PLR0917 - FastAPI passes each parameter by its name
    agent_profile: str,
    provider: str = DEFAULT_PROVIDER,
    working_directory: str | None = None,
    model: str | None = None,
    args: Arguments = [],  # noqa: B006 - FastAPI copies it
    permissions: Permissions = "unattended",
    continues: Continues = None,
    body: CreateBody | None = None,
) -> TerminalSpec:
    """The terminal to start, from the parameters that a new session and a new terminal share."""
    body = body or CreateBody()
    found = _own_provider(provider, body.agent) if body.agent else find_provider(provider)
    if found is None:
        raise BadRequest(f"Unknown provider type: {provider[:80]}")
    try:
        profile = load_profile(profile_name(agent_profile))
    except ProfileError as error:
        raise BadRequest(str(error)) from None
    if model and not _MODEL.fullmatch(model):
        raise BadRequest(f"Invalid model: {model[:80]!r}")
    arguments = (*args, *body.args)
    if len(arguments) > MOST_ARGUMENTS or any(len(word) > LONGEST_ARGUMENT or "\0" in word for word in arguments):
        raise BadRequest(f"args: at most {MOST_ARGUMENTS} of at most {LONGEST_ARGUMENT} characters")
    env = body.env_vars or {}
    if not _are_variables(env):
        raise BadRequest("env_vars: a name has to be letters, digits and _")
    cwd = _directory(working_directory)
    initial = body.initial_message
    if initial is not None and not without_control_characters(check_length(initial, "initial_message")).strip():
        raise BadRequest("initial_message: there is nothing in it to type")
    return TerminalSpec(
        found,
        profile.name,
        profile.instructions,
        cwd,
        model=model or "",
        args=arguments,
        asks=permissions == "ask",
        env=env,
        description=body.description or "",
        initial=initial or "",
        sandbox=_check_sandbox(body.sandbox),
        continues=continues or "",
    )


def _own_provider(name: str, agent: OwnAgent) -> Provider:
    """An agent that the client has defined, checked as its settings are."""
    if name in provider_names() or not _OWN_NAME.fullmatch(name):
        raise BadRequest(f"agent: {name[:80]!r} is no name for an agent of your own, or is taken")
    if not agent.command[0] or any("\0" in word for word in agent.command):
        raise BadRequest("agent: its command is no command")
    if not _are_variables(agent.env):
        raise BadRequest("agent: the name of a variable has to be letters, digits and _")
    return own_provider(name, agent.model_dump())


def _are_variables(env: Mapping[str, str]) -> bool:
    return all(is_variable(name, value) for name, value in env.items())


def check_length(text: str, name: str) -> str:
    """A text that is not too long to be typed."""
    if len(text.encode(errors="surrogatepass")) > MAX_MESSAGE:
        raise TooLong(f"{name}: is longer than {MAX_MESSAGE} bytes")
    return text


def new_session_name(name: str | None) -> str:
    """The name that was asked for, or one that is free."""
    return session_name(name) if name is not None else PREFIX + secrets.token_hex(4)


def _check_sandbox(sandbox: Sandbox | None) -> Sandbox | None:
    """A sandbox whose paths can be given to a program."""
    if sandbox is None:
        return None
    if any(_CONTROL.search(path) for path in (*sandbox.write, *sandbox.hide, *sandbox.show)):
        raise BadRequest("sandbox: a path has a control character in it")
    if not sandbox.tmp.startswith("/") or not _directory(sandbox.tmp):
        raise BadRequest("sandbox: tmp is no absolute path")
    if sandbox.git and (not sandbox.git.startswith("/") or not _directory(sandbox.git)):
        raise BadRequest("sandbox: git is no absolute path")
    try:
        AllowList.parse(sandbox.domains)
    except ValueError as error:
        raise BadRequest(f"sandbox: {error}") from None
    if sandbox.caches and not sandbox.caches.startswith("/"):
        raise BadRequest("sandbox: caches is no absolute path")
    return sandbox


def _directory(text: str | None) -> Path:
    if text is None:
        return Path.cwd()
    if not text or _CONTROL.search(text):
        raise BadRequest("working_directory: is no path")
    try:
        path = Path(text).expanduser().resolve()
        if path.is_dir():
            return path
    except (OSError, RuntimeError, ValueError):
        pass
    raise BadRequest(f"Working directory does not exist: {text[:200]}")
