"""Beginning or continuing a conversation with an agent: the requests in their order. Pure: nothing is sent here.

`open_session` is a generator: it yields what to ask for, and is sent the answers.
"""

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from quintet import __version__
from quintet.providers.acp.failures import error_text
from quintet.providers.acp.host_settings import HostSettings, InstructionsBy, ModelBy
from quintet.providers.acp.json_rpc import NO_SUCH_METHOD, NOT_LOGGED_IN, Response, RpcError
from quintet.providers.json_lines import as_object, text_in

_PROTOCOL: Final = 1
_MINUTE: Final = 60


class Call(NamedTuple):
    """A request to the agent."""

    method: str
    params: Mapping[str, Any]


class PauseUntil(NamedTuple):
    """A time to wait for before the next request, in seconds since the epoch."""

    time: float
    why: str


class Warn(NamedTuple):
    """Something that did not work out, and that is no reason to stop."""

    text: str


Step = Call | PauseUntil | Warn
Opening = Generator[Step, Response | None, "AcpSession"]


class OpeningFailed(Exception):  # noqa: N818 - reads as what happened
    """The agent gives no conversation; the text is one line for the user."""


@dataclass(frozen=True)
class AcpSession:
    """A conversation that takes prompts."""

    id: str
    agent: str
    """the program's own name and release"""
    loaded: bool
    tell_role: bool
    """whether the role's text goes before the next prompt"""


def open_session(settings: HostSettings, cwd: str, now: float) -> Opening:
    """Say hello, begin or continue the conversation, and set its mode and model."""
    hello = yield Call(
        "initialize",
        {
            "protocolVersion": _PROTOCOL,
            "clientCapabilities": {},
            "clientInfo": {"name": "quintet", "version": __version__},
        },
    )
    if hello is None or hello.error:
        raise OpeningFailed(_refused(settings, "initialize", hello))
    abilities = as_object(hello.result.get("agentCapabilities"))
    params: dict[str, Any] = {"cwd": cwd, "mcpServers": []}
    by_prompt = bool(settings.instructions) and settings.instructions_by is not InstructionsBy.PROGRAM
    takes_role = "systemPrompt" in as_object(abilities.get("sessionCapabilities"))
    if by_prompt and takes_role and settings.instructions_by is InstructionsBy.SYSTEM_PROMPT:
        block = {"type": "text", "text": settings.instructions}
        params["systemPrompt"], by_prompt = {"mode": "append", "content": [block]}, False
    loaded = bool(settings.session) and (yield from _continue(settings, abilities, params, now))
    session = settings.session if loaded else (yield from _begin(settings, params))
    yield from _set_up(settings, session)
    return AcpSession(session, _agent(hello.result) or settings.name, loaded, by_prompt)


def begin_again(settings: HostSettings, cwd: str, unused: AcpSession) -> Opening:
    """Begin another conversation in place of one that had no prompt."""
    session = yield from _begin(settings, {"cwd": cwd, "mcpServers": []})
    yield from _set_up(settings, session)
    return replace(unused, id=session)


def _continue(
    settings: HostSettings, abilities: Mapping[str, Any], params: Mapping[str, Any], now: float
) -> Generator[Step, Response | None, bool]:
    """Go on with the conversation: by `session/resume`, which is quicker, else by `session/load`."""
    asked = {"sessionId": settings.session, **params}
    methods = ["session/resume"] if "resume" in as_object(abilities.get("sessionCapabilities")) else []
    methods += ["session/load"] if abilities.get("loadSession") is True else []
    if methods and settings.load_in_next_minute:
        until = math.floor(settings.session_opened / _MINUTE + 1) * _MINUTE + 1.0
        if now < until:
            yield PauseUntil(until, "a conversation can be loaded from the minute after it was opened last")
    why = "the agent cannot load conversations"
    for method in methods:
        answer = yield Call(method, asked)
        if answer is not None and answer.error is None:
            return True
        why = _reason(answer)
        if answer is not None and answer.error and answer.error.code == NOT_LOGGED_IN:
            raise OpeningFailed(_refused(settings, method, answer))
    yield Warn(f"this is a new conversation: the earlier one was not continued ({why})")
    return False


def _begin(settings: HostSettings, params: Mapping[str, Any]) -> Generator[Step, Response | None, str]:
    answer = yield Call("session/new", params)
    session = text_in(answer.result, "sessionId") if answer and answer.error is None else ""
    if not session:
        raise OpeningFailed(_refused(settings, "session/new", answer))
    return session


def _set_up(settings: HostSettings, session: str) -> Generator[Step, Response | None, None]:
    """Mode and model: a program forgets them when it loads a conversation."""
    if settings.mode:
        yield from _set("mode", settings.mode, session)
    if settings.model and settings.model_by is ModelBy.PROTOCOL:
        yield from _set("model", settings.model, session)


def _set(what: str, value: str, session: str) -> Generator[Step, Response | None, None]:
    """Set something by its own request, or as a config option where the agent does not know that."""
    answer: Response | None = None
    by_method = Call(f"session/set_{what}", {f"{what}Id": value})
    for call in (by_method, Call("session/set_config_option", {"configId": what, "value": value})):
        answer = yield call._replace(params={"sessionId": session, **call.params})
        if answer is not None and answer.error is None:
            return
        if answer is None or answer.error is None or answer.error.code != NO_SUCH_METHOD:
            break
    yield Warn(f"{what} {value} was not set: {_reason(answer)}")


def _agent(hello: Mapping[str, Any]) -> str:
    info = as_object(hello.get("agentInfo"))
    return " ".join(filter(None, (text_in(info, "name"), text_in(info, "version"))))[:100]


def _reason(answer: Response | None) -> str:
    if answer is None or answer.error is None:
        return "it gave no answer"
    return _line(answer.error)


def _line(error: RpcError) -> str:
    code = "method not found" if error.code == NO_SUCH_METHOD and not error.message else error_text(error)
    return " ".join(code.split())[:500]


def _refused(settings: HostSettings, method: str, answer: Response | None) -> str:
    """One line on an agent that gives no conversation."""
    name = settings.name
    if answer is not None and answer.error and answer.error.code == NOT_LOGGED_IN:
        return f"{name} wants a login: {_line(answer.error)}"
    return f"{name} has refused {method}: {_reason(answer)}"
