"""Whether a run can have the sandbox that its settings ask for."""

import os
from collections.abc import Iterator
from pathlib import Path

from quintet.api.models import Sandbox
from quintet.api.quintet_backend import backend_of
from quintet.config import Settings
from quintet.errors import ConfigError, SandboxError
from quintet.layout import caches_folder, user_state_folder
from quintet.providers.registry import REGISTERED
from quintet.providers.scripted import SCRIPTED
from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.sandbox.network.outlets import ALLOW
from quintet.sandbox.network.trial import try_allow_list
from quintet.server.http.client import client_for
from quintet.setup.checks import DoctorFinding, Level, failure, ok, warning


def refuse_without_sandbox(settings: Settings) -> None:
    """Raise where the sandbox is on and cannot be made: a run never goes on without it."""
    if settings.sandbox != "on":
        return
    _check_network(settings)
    if settings.api:
        _check_server(settings)
    find_bubblewrap()


def agent_sandbox(settings: Settings, provider: str, tmp: Path) -> Sandbox | None:
    """The sandbox of an agent that is in no run, with a folder that it has as `.tmp`; None where the settings ask for
    none."""
    if not settings.is_sandboxed:
        return None
    return Sandbox(
        tmp=str(tmp),
        write=list(settings.sandbox_write),
        hide=[str(user_state_folder()), *settings.sandbox_hide],
        show=list(settings.sandbox_show),
        env=list(settings.sandbox_env),
        caches=str(caches_folder(settings.wd)),
        network=settings.sandbox_network,
        domains=list(settings.domains_of(provider, os.environ)),
    )


def check_sandbox(settings: Settings) -> DoctorFinding:
    """Make a sandbox as a run would, also where the settings ask for none."""
    is_on = settings.is_sandboxed
    try:
        found = find_bubblewrap()
        refuse_without_sandbox(settings)
    except SandboxError as error:
        if is_on:
            return failure("sandbox", error.found, error.fix)
        return DoctorFinding("sandbox", Level.OK, f"off; SANDBOX=on is not possible: {error.found}", error.fix)
    except ConfigError as error:
        return failure("sandbox", str(error), "change the setting")
    tried = f"bubblewrap {found.version} at {found.program} works"
    return ok("sandbox", f"on; {tried}" if is_on else f"off; SANDBOX=on is possible: {tried}")


def check_allow_list(settings: Settings) -> Iterator[DoctorFinding]:
    """Try the proxy of a run with an allow-list, and say which agents were seen to work with it."""
    if not settings.is_sandboxed or settings.sandbox_network != ALLOW:
        return
    try:
        try_allow_list()
    except SandboxError as error:
        yield failure("network", error.found, error.fix)
        return
    used = sorted({agent.provider for agent in settings.agents.values()} - {SCRIPTED.name})
    hosts = dict.fromkeys(host for name in used for host in settings.domains_of(name, os.environ))
    told = f"only {', '.join(hosts) or 'nothing'}; the proxy works"
    doubtful = [name for name in used if name not in REGISTERED or not REGISTERED[name].is_proxied]
    if doubtful:
        shown = [one.name for one in REGISTERED.values() if one.is_proxied]
        yield warning(
            "network",
            f"{told}; not seen to reach a model through it: {', '.join(doubtful)} (seen: {', '.join(shown)})",
            "try a run with one small task first",
        )
    else:
        yield ok("network", told)


def _check_network(settings: Settings) -> None:
    needing = {agent.provider for agent in settings.agents.values()} - {SCRIPTED.name}
    if settings.sandbox_network == "none" and needing:
        names = " and ".join(sorted(needing))
        verb = "needs" if len(needing) == 1 else "need"
        raise ConfigError(f"SANDBOX_NETWORK=none: {names} {verb} the network to reach a model; use keep or allow")
    unknown = sorted(name for name in needing if not settings.domains_of(name, os.environ))
    if settings.sandbox_network == ALLOW and unknown:
        names = " and ".join(unknown)
        raise ConfigError(f"SANDBOX_NETWORK=allow: the hosts of {names} are not known; name them in SANDBOX_DOMAINS")


def _check_server(settings: Settings) -> None:
    client = client_for(settings.api, "")
    try:
        if not backend_of(client).takes_sandboxes:
            told = "only Quintet's own terminal server can make a sandbox"
            raise ConfigError(f"SANDBOX=on: {told}, and {settings.api} is another one; unset API")
    finally:
        client.close()
