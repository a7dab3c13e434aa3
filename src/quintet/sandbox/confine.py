"""The command that starts a program in a sandbox: the one way in, for agents, checks, setup commands and drafts."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from quintet import files
from quintet.errors import SandboxError
from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.sandbox.mounts import Access, Mount, bwrap_arguments
from quintet.sandbox.network.outlets import KEEP, Outlet, network_mounts
from quintet.sandbox.places import SandboxPlaces, clear_mount_points
from quintet.sandbox.toolchains import real

_MOST_PINS: Final = 200
"""mounts for protected files: bubblewrap takes longer for each of them than for the one before"""


def confine(
    places: SandboxPlaces,
    env: Mapping[str, str],
    cwd: Path,
    *,
    network: str,
    outlet: Outlet | None = None,
    pins: Iterable[Mount] = (),
) -> list[str]:
    """What stands before the words of the program; SandboxError where this machine has no sandbox."""
    bubblewrap = find_bubblewrap()
    files.make_folder(places.scratch)
    mounts = [*network_mounts(network), *places.mounts(env), *pins, *(outlet.mounts if outlet else ())]
    clear_mount_points(mounts)
    _refuse_links(mounts, real(places.tree))
    arguments = bwrap_arguments(mounts, cwd, network=network == KEEP, is_root=os.getuid() == 0)
    return [bubblewrap.program, *bubblewrap.flags, *arguments, "--", *(outlet.command if outlet else ())]


def _refuse_links(mounts: Iterable[Mount], tree: Path) -> None:
    """Refuse mounts that a link in the work tree would lead elsewhere: bubblewrap follows it."""
    for mount in mounts:
        if tree in mount.path.parents and mount.access is not Access.LINK and real(mount.path) != mount.path:
            raise SandboxError(f"a link in the work tree leads {mount.path} elsewhere", "remove that link")


def pin(tree: Path, folders: Iterable[str], single_files: Iterable[str]) -> list[Mount]:
    """Mounts that make folders and files of the tree read-only, so that nobody can move what they are in either.

    Of more files than bubblewrap can mount in a moment none is.
    """
    top, single = real(tree), list(single_files)
    if len(single) > _MOST_PINS:
        single = []
    paths = [*folders, *single]
    above = {folder for path in paths for folder in _folders_above(path)} - set(folders)
    ways = (Mount(top / path, Access.WRITE, pinned=True) for path in sorted(above))
    ends = (Mount(top / path, Access.READ, is_file=path in single, pinned=True) for path in paths)
    return [mount for mount in (*ways, *ends) if real(mount.path) == mount.path]


def _folders_above(path: str) -> Iterator[str]:
    return (str(folder) for folder in PurePosixPath(path).parents if folder.name)
