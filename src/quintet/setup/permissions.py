"""What the agents of a run may do without asking, in words, and how to change that."""

from dataclasses import dataclass

from quintet.config import Settings
from quintet.providers.scripted import SCRIPTED
from quintet.setup.providers import provider_named


@dataclass(frozen=True)
class Permissions:
    """Two sentences without their periods."""

    summary: str
    """what the agents may do"""
    change: str
    """how to change that; may be empty"""


def agent_permissions(settings: Settings) -> Permissions | None:
    """What the agents may do by these settings; None where all of them only follow a script."""
    acting = {role: agent for role, agent in settings.agents.items() if agent.provider != SCRIPTED.name}
    if not acting:
        return None
    own = [
        role
        for role, agent in acting.items()
        if (provider := provider_named(agent.provider, settings)) and provider.sets_permissions(agent.args)
    ]
    exception = f"; what {', '.join(own)} may do is in their own arguments" if own else ""
    if settings.permissions != "ask":
        whose, where = ("the server's", ", where the server is Quintet's") if settings.api else ("your", "")
        ask = f"PERMISSIONS=ask lets them ask{where}"
        if settings.is_sandboxed:
            return Permissions(f"the agents act without asking, in a sandbox{exception}", ask)
        summary = f"the agents act without asking and with all of {whose} rights{exception}"
        return Permissions(summary, f"{ask}; SANDBOX=on limits what they reach")
    if settings.auto_accept_permissions:
        summary = f"the agents ask before they act, and always get a yes{exception}"
        return Permissions(summary, "without AUTO_ACCEPT_PERMISSIONS they wait for your answer")
    return Permissions(f"the agents ask before they act, as far as their own settings say so{exception}", "")
