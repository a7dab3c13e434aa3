"""The sandbox of a terminal: the command that starts the agent's program with less than all rights of its user."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import SandboxError
from quintet.providers.base import LaunchPlan
from quintet.providers.editor import OWN
from quintet.providers.private_home import PrivateHome
from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.sandbox.environment import passed_on
from quintet.sandbox.mounts import bwrap_arguments
from quintet.sandbox.places import SandboxPlaces, Wishes, clear_mount_points
from quintet.server.refusals import BadRequest
from quintet.server.terminal.agent_home import in_home
from quintet.server.terminal.terminal_spec import TerminalSpec

SCRATCH: Final = "tmp"
"""the folder for temporary files, in that of the terminal"""


def sandbox_command(
    folder: Path, spec: TerminalSpec, plan: LaunchPlan, home: PrivateHome | None, env: Mapping[str, str]
) -> list[str]:
    """What stands before the command of the terminal's program; nothing where it is in no sandbox."""
    if spec.sandbox is None or home is None:
        return []
    try:
        bubblewrap = find_bubblewrap()
    except SandboxError as error:
        raise BadRequest(str(error)) from None
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
    )
    files.make_folder(places.scratch)
    mounts = places.mounts(env)
    clear_mount_points(mounts)
    arguments = bwrap_arguments(mounts, spec.cwd, network=wanted.network, is_root=os.getuid() == 0)
    return [bubblewrap.program, *bubblewrap.flags, *arguments, "--"]


def inside_environment(spec: TerminalSpec, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that a program in a sandbox gets: an allow-list, and what the client has named."""
    if spec.sandbox is None:
        return dict(env)
    allowed = passed_on(env, (*spec.provider.variables(env), *spec.sandbox.env))
    allowed.pop(spec.provider.registration.home_variable, None)  # inside, its folders are where they usually are
    return {"HOME": str(Path.home()), **allowed, **{name: env[name] for name in spec.env if name in env}}
