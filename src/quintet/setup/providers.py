"""The agent CLIs that a run can have, as they are on this machine."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

from quintet.config import Settings
from quintet.providers.base import Provider
from quintet.providers.programs import version_of
from quintet.providers.registry import REGISTERED, find_provider, own_provider


@dataclass(frozen=True)
class ProviderFinding:
    """One agent CLI."""

    name: str
    driven: str
    """by what Quintet knows how it stands"""
    tried: str
    """the releases that were tried; empty where none was"""
    program: str = ""
    """where it is; empty where it is not installed"""
    version: str = ""
    login: str = ""
    install: str = ""
    own: bool = False
    """whether the settings define it"""


def provider_named(name: str, settings: Settings) -> Provider | None:
    """The provider of a name, also one that the settings define."""
    own = settings.providers.get(name)
    return own_provider(name, asdict(own)) if own else find_provider(name)


def list_providers(env: Mapping[str, str], settings: Settings) -> list[ProviderFinding]:
    """All of them, asked side by side: some take a second to tell their release."""
    names = (*REGISTERED, *settings.providers)
    found = [provider for name in names if (provider := provider_named(name, settings))]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(partial(_finding, env=env, settings=settings), found))


def _finding(provider: Provider, env: Mapping[str, str], settings: Settings) -> ProviderFinding:
    program, is_own = provider.find(env, settings.wd), provider.name in settings.providers
    # the command of an agent of the user's may be npx or python, whose release says nothing
    release = version_of(program, env) if program and not is_own else ()
    oldest, newest = provider.tested
    return ProviderFinding(
        provider.name,
        "messages of the protocol" if provider.doorbell else "screen and record",
        oldest if oldest == newest else f"{oldest} to {newest}",
        program or "",
        ".".join(map(str, release)),
        provider.login(program, env) if program else "",
        provider.registration.install,
        is_own,
    )
