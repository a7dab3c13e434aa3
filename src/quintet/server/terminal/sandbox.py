"""The sandbox of a terminal: the command that starts the agent's program with less than all rights of its user."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import SandboxError
from quintet.providers.registration import Registration
from quintet.providers.registry import REGISTERED
from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.sandbox.mounts import bwrap_arguments
from quintet.sandbox.network.outlets import ALLOW, KEEP, Outlets, network_mounts
from quintet.sandbox.places import SandboxPlaces, Wishes
from quintet.server.refusals import BadRequest
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.terminal_spec import TerminalSpec

SCRATCH: Final = "tmp"
"""the folder for temporary files, in that of the terminal"""


def sandbox_command(
    state_folder: StateFolder, folder: Path, spec: TerminalSpec, env: Mapping[str, str | None], outlets: Outlets
) -> list[str]:
    """What stands before the command of the terminal's program; nothing where it is in no sandbox."""
    if spec.sandbox is None:
        return []
    try:
        bubblewrap = find_bubblewrap()
    except SandboxError as error:
        raise BadRequest(str(error)) from None
    known = {name: value for name, value in env.items() if value is not None}
    registration, wanted = spec.provider.registration, spec.sandbox
    places = SandboxPlaces(
        spec.cwd,
        scratch=folder / SCRATCH,
        tmp=Path(wanted.tmp),
        homes=registration.homes_in(known),
        foreign=(str(state_folder.root), *_of_others(registration, known)),
        own=(folder,),
        wishes=Wishes(wanted.write, wanted.hide, wanted.show),
    )
    files.make_folder(places.scratch)
    _make_homes(places.homes, known)
    outlet = (
        outlets.open(state_folder.outlet(folder.parent.name, folder.name), wanted.domains)
        if wanted.network == ALLOW
        else None
    )
    mounts = [*network_mounts(wanted.network), *places.mounts(known), *(outlet.mounts if outlet else ())]
    arguments = bwrap_arguments(mounts, spec.cwd, network=wanted.network == KEEP, is_root=os.getuid() == 0)
    return [bubblewrap.program, *bubblewrap.flags, *arguments, "--", *(outlet.command if outlet else ())]


def _of_others(registration: Registration, env: Mapping[str, str]) -> list[str]:
    """What belongs to the other agent CLIs: their logins, settings and histories."""
    others = [other for other in REGISTERED.values() if other is not registration]
    return [path for other in others for path in (*other.homes, *other.homes_in(env), *other.own_files)]


def _make_homes(homes: Sequence[str], env: Mapping[str, str]) -> None:
    """Make the program's folders where they are missing: inside, it could not."""
    home = Path(env.get("HOME") or Path.home())
    for path in (home / text.removeprefix("~/") for text in homes):
        if not path.exists():
            files.make_folder(path)
