"""Whether a run can have the sandbox that its settings ask for."""

from pathlib import Path

from quintet.api.models import Sandbox
from quintet.api.quintet_backend import backend_of
from quintet.config import Settings
from quintet.errors import ConfigError, SandboxError
from quintet.layout import user_state_folder
from quintet.providers.scripted import SCRIPTED
from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.server.http.client import client_for
from quintet.setup.checks import DoctorFinding, Level, failure, ok


def refuse_without_sandbox(settings: Settings) -> None:
    """Raise where the sandbox is on and cannot be made: a run never goes on without it."""
    if settings.sandbox != "on":
        return
    _check_network(settings)
    if settings.api:
        _check_server(settings)
    find_bubblewrap()


def agent_sandbox(settings: Settings, tmp: Path) -> Sandbox | None:
    """The sandbox of an agent that is in no run, with a folder that it has as `.tmp`; None where the settings ask for
    none."""
    if not settings.is_sandboxed:
        return None
    return Sandbox(
        tmp=str(tmp),
        write=list(settings.sandbox_write),
        hide=[str(user_state_folder()), *settings.sandbox_hide],
        show=list(settings.sandbox_show),
        network=settings.sandbox_network != "none",
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


def _check_network(settings: Settings) -> None:
    needing = {agent.provider for agent in settings.agents.values()} - {SCRIPTED.name}
    if settings.sandbox_network == "none" and needing:
        names = " and ".join(sorted(needing))
        verb = "needs" if len(needing) == 1 else "need"
        raise ConfigError(f"SANDBOX_NETWORK=none: {names} {verb} the network to reach a model; use keep")


def _check_server(settings: Settings) -> None:
    client = client_for(settings.api, "")
    try:
        if not backend_of(client).takes_sandboxes:
            told = "only Quintet's own terminal server can make a sandbox"
            raise ConfigError(f"SANDBOX=on: {told}, and {settings.api} is another one; unset API")
    finally:
        client.close()
