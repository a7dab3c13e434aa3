"""The sandbox of a terminal: the command that starts the agent's program with less than all rights of its user."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quintet.errors import SandboxError
from quintet.providers.base import LaunchPlan
from quintet.providers.editor import OWN
from quintet.providers.private_home import PrivateHome
from quintet.sandbox.confine import confine
from quintet.sandbox.environment import passed_on
from quintet.sandbox.network.outlets import ALLOW, Outlet, Outlets
from quintet.sandbox.places import SandboxPlaces, Wishes
from quintet.server.refusals import BadRequest
from quintet.server.terminal.agent_home import in_home
from quintet.server.terminal.terminal_spec import TerminalSpec

SCRATCH: Final = "tmp"
"""the folder for temporary files, in that of the terminal"""


def sandbox_command(
    folder: Path,
    spec: TerminalSpec,
    plan: LaunchPlan,
    home: PrivateHome | None,
    *,
    env: Mapping[str, str],
    outlet: Outlet | None = None,
) -> list[str]:
    """What stands before the command of the terminal's program; nothing where it is in no sandbox."""
    if spec.sandbox is None or home is None:
        return []
    wanted = spec.sandbox
    places = SandboxPlaces(
        spec.cwd,
        scratch=folder / SCRATCH,
        tmp=Path(wanted.tmp),
        home=home.folder,
        private=[in_home(name) for name in spec.provider.registration.homes],
        caches=Path(wanted.caches) if wanted.caches else None,
        programs=(plan.argv[0], *plan.programs),
        read=(folder,),
        own=(folder / OWN,),
        wishes=Wishes(wanted.write, wanted.hide, (*plan.reads, *wanted.show)),
        git=Path(wanted.git) if wanted.git else None,
    )
    try:
        return confine(places, env, spec.cwd, network=wanted.network, outlet=outlet)
    except SandboxError as error:
        raise BadRequest(str(error)) from None


def open_terminal_outlet(outlets: Outlets, folder: Path, spec: TerminalSpec) -> Outlet | None:
    """Open the way out of a terminal's sandbox, at a folder of its own; None if it needs none."""
    is_needed = spec.sandbox is not None and spec.sandbox.network == ALLOW
    return outlets.open(folder, spec.sandbox.domains) if spec.sandbox and is_needed else None


def inside_environment(spec: TerminalSpec, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that a program in a sandbox gets: an allow-list, and what the client has named."""
    if spec.sandbox is None:
        return dict(env)
    allowed = passed_on(env, (*spec.provider.variables(env), *spec.sandbox.env))
    allowed.pop(spec.provider.registration.home_variable, None)  # inside, its folders are where they usually are
    return {"HOME": str(Path.home()), **allowed, **{name: env[name] for name in spec.env if name in env}}
