"""What the agents of a run may do without asking anybody, and how to change that."""

from dataclasses import dataclass

from quintet.config import Settings
from quintet.providers.registry import find_provider
from quintet.providers.scripted import SCRIPTED


@dataclass(frozen=True)
class Rights:
    """Two sentences without a period: what the agents may do, and how to change it (may be empty)."""

    told: str
    change: str


def rights(settings: Settings) -> Rights | None:
    """None where all agents only follow a script."""
    acting = {role: agent for role, agent in settings.agents.items() if agent.provider != SCRIPTED.name}
    if not acting:
        return None
    own = [
        role
        for role, agent in acting.items()
        if (provider := find_provider(agent.provider)) and provider.sets_permissions(agent.args)
    ]
    but = f"; what {', '.join(own)} may do is in their own arguments" if own else ""
    if settings.permissions != "ask":
        told = f"the agents act without asking and with all of {_whose(settings)} rights{but}"
        return Rights(told, f"PERMISSIONS=ask lets them ask{_where(settings)}; a container limits what they reach")
    if settings.auto_accept_permissions:
        told = f"the agents ask before they act, and always get a yes{but}"
        return Rights(told, "without AUTO_ACCEPT_PERMISSIONS they wait for your answer")
    return Rights(f"the agents ask before they act, as far as their own settings say so{but}", "")


def _whose(settings: Settings) -> str:
    return "the server's" if settings.api else "your"


def _where(settings: Settings) -> str:
    return ", where the server is Quintet's" if settings.api else ""
