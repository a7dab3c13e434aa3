"""Which providers there are. A new one is its own module and a line here."""

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from quintet.providers.base import Provider

_MODULES: Final = {
    "scripted": "quintet.providers.scripted.provider",
    "codex": "quintet.providers.codex.provider",
    "claude_code": "quintet.providers.claude_code.provider",
}
_loaded: dict[str, Provider] = {}


def provider_names() -> tuple[str, ...]:
    """The providers that can be started."""
    return tuple(name for name, module in _MODULES.items() if _exists(module))


def find_provider(name: str) -> Provider | None:
    """The provider of that name; None where there is none."""
    if name in _loaded:
        return _loaded[name]
    module = _MODULES.get(name)
    if module is None or not _exists(module):
        return None
    provider = import_module(module).PROVIDER
    if not isinstance(provider, Provider):
        raise TypeError(f"{module}.PROVIDER is no provider")
    _loaded[name] = provider
    return provider


def register(provider: Provider) -> None:
    """Add a provider that is not shipped, or replace one."""
    _loaded[provider.name] = provider


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
