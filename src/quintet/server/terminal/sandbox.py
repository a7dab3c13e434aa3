"""The sandbox of a terminal: the command that starts the agent's program with less than all rights of its user."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import SandboxError
from quintet.providers.registration import Registration
from quintet.providers.registry import REGISTERED
from quintet.sandbox.confine import confine
from quintet.sandbox.network.outlets import ALLOW, Outlets
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
    known = {name: value for name, value in env.items() if value is not None}
    registration, wanted = spec.provider.registration, spec.sandbox
    places = SandboxPlaces(
        spec.cwd,
        scratch=folder / SCRATCH,
        tmp=Path(wanted.tmp),
        git=Path(wanted.git) if wanted.git else None,
        homes=registration.homes_in(known),
        foreign=(str(state_folder.root), *_of_others(registration, known)),
        own=(folder,),
        wishes=Wishes(wanted.write, wanted.hide, wanted.show),
    )
    _make_homes(places.homes, known)
    outlet = (
        outlets.open(state_folder.outlet(folder.parent.name, folder.name), wanted.domains)
        if wanted.network == ALLOW
        else None
    )
    try:
        return confine(places, known, spec.cwd, network=wanted.network, outlet=outlet)
    except SandboxError as error:
        raise BadRequest(str(error)) from None


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
