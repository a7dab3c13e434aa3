"""All agent CLIs that Quintet can drive. Their own code is loaded only when one of them is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from quintet.providers.claude_code import CLAUDE_CODE
from quintet.providers.codex import CODEX
from quintet.providers.scripted import SCRIPTED

if TYPE_CHECKING:
    from quintet.providers.base import Provider

REGISTERED: Final = {one.name: one for one in (CODEX, CLAUDE_CODE, SCRIPTED)}
"""by name; the first one is the default"""


def provider_names() -> tuple[str, ...]:
    """The names of all providers, the default one first."""
    return tuple(REGISTERED)


def find_provider(name: str) -> "Provider | None":
    """The provider of a name, with its code; None where there is none."""
    if name not in REGISTERED:
        return None
    provider: Provider = import_module(f"quintet.providers.{name}.provider").PROVIDER
    return provider
