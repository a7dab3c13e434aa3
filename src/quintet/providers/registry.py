"""All agent CLIs that Quintet can drive. Their own code is loaded only when one of them is used."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quintet.providers.acp.agents import ACP_AGENTS, AcpAgent, own_agent, started_agent
from quintet.providers.claude_code import CLAUDE_CODE
from quintet.providers.codex import CODEX
from quintet.providers.registration import Registration
from quintet.providers.scripted import SCRIPTED

if TYPE_CHECKING:
    from quintet.providers.base import Provider

REGISTERED: Final[dict[str, Registration]] = {one.name: one for one in (CODEX, CLAUDE_CODE, *ACP_AGENTS, SCRIPTED)}
"""by name; the first one is the default"""

OWN_NAME: Final = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
"""what an agent may be called that the user defines"""
NOT_TRIED: Final = "was not tried with Quintet: it is started by the defaults of the Agent Client Protocol"


def provider_names() -> tuple[str, ...]:
    """The names of all providers, the default one first."""
    return tuple(REGISTERED)


def command_providers() -> tuple[str, ...]:
    """Those that know OpenSpec's workflows as commands."""
    return tuple(one.name for one in REGISTERED.values() if one.has_commands)


def untried_providers() -> tuple[str, ...]:
    """Those of which no release was tried."""
    return tuple(one.name for one in ACP_AGENTS if not one.is_tried)


def endpoints_of(name: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of an agent's models; of an agent that the user has defined, those that the environment names."""
    variables = dict.fromkeys(variable for one in REGISTERED.values() for variable in one.base_urls)
    return REGISTERED.get(name, Registration(name, base_urls=tuple(variables))).endpoints_in(env)


def find_provider(name: str) -> "Provider | None":
    """The provider of a name, with its code; None where there is none."""
    found = REGISTERED.get(name)
    if isinstance(found, AcpAgent):
        return _acp_provider(found)
    if found is None:
        return None
    provider: Provider = import_module(f"quintet.providers.{name}.provider").PROVIDER
    return provider


def own_provider(name: str, definition: dict[str, Any]) -> "Provider":
    """The provider of an agent that the user has defined."""
    return _acp_provider(own_agent(name, **definition))


def provider_of_terminal(name: str, folder: Path) -> "Provider | None":
    """The provider of a terminal that another server has started."""
    started = None if name in REGISTERED else started_agent(folder)
    return _acp_provider(started) if started else find_provider(name)


def _acp_provider(agent: AcpAgent) -> "Provider":
    provider: Provider = import_module("quintet.providers.acp.provider").AcpProvider(agent)
    return provider
