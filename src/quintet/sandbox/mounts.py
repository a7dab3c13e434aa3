"""What a sandbox shows of the machine's files, as the arguments of bubblewrap. Pure: nothing is looked at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

ROOT: Final = Path("/")
TEMPORARY: Final = Path("/tmp")  # noqa: S108 - it is the name inside
_NAMESPACES: Final = ("--die-with-parent", "--unshare-pid", "--unshare-ipc")
_WHOLE_MACHINE: Final = (
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
)
"""root could write settings of the kernel otherwise, which name programs that it starts"""
_KEPT_BY_ROOT: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
"""what root may still do: work with files of other users. With more it could take the mounts away"""


class Access(Enum):
    """What can be done with a path and all below it."""

    READ = auto()
    WRITE = auto()
    HIDDEN = auto()
    """it looks empty"""
    FRESH = auto()
    """it is empty at the start, and what is written to it is gone in the end"""
    LINK = auto()
    """a symbolic link; its source is what the link says"""


@dataclass(frozen=True)
class Mount:
    """One path in a sandbox. It also counts for what is below it, where no other mount is nearer."""

    path: Path
    """without any link in it"""
    access: Access
    source: Path | None = None
    """what is seen there, where that is not the path itself"""
    is_file: bool = False
    pinned: bool = False
    """it is made although it changes nothing: inside, a mount point cannot be moved, removed or replaced"""


def arrange(wanted: Iterable[Mount]) -> list[Mount]:
    """The mounts in the order in which they have to be made: a folder before what is in it.

    Of two for the same path the later one counts. One that changes nothing is left out.
    """
    by_path = {mount.path: mount for mount in wanted}
    made: dict[Path, Mount] = {ROOT: Mount(ROOT, Access.READ)}
    for path in sorted(by_path, key=lambda path: path.parts):
        mount = by_path[path]
        around = next(made[parent] for parent in path.parents if parent in made)
        if mount.access is Access.LINK:
            # in what is shown as it is, the link is there already
            if around.source or around.access in (Access.HIDDEN, Access.FRESH):
                made[path] = mount
        elif mount.access is not around.access or mount.source or around.source or mount.pinned:
            made[path] = mount
    return [mount for mount in made.values() if mount.path != ROOT]


def bwrap_arguments(wanted: Iterable[Mount], cwd: Path, *, network: bool = True, is_root: bool = False) -> list[str]:
    """All arguments of bubblewrap but the command that it runs."""
    mounts = arrange(wanted)
    words = [*_NAMESPACES, *(() if network else ("--unshare-net",))]
    if is_root:
        words += ["--cap-drop", "ALL", *(word for name in _KEPT_BY_ROOT for word in ("--cap-add", f"CAP_{name}"))]
    words += _WHOLE_MACHINE
    for mount in mounts:
        words += _words(mount)
    # only now: bubblewrap has made the folders for the mounts that are inside them
    for mount in mounts:
        if mount.access is Access.HIDDEN and not mount.is_file:
            words += ["--remount-ro", str(mount.path)]
    return [*words, "--setenv", "TMPDIR", str(TEMPORARY), "--chdir", str(cwd)]


def _words(mount: Mount) -> Sequence[str]:
    path, source = str(mount.path), str(mount.source or mount.path)
    match mount.access:
        case Access.READ:
            return ("--ro-bind", source, path)
        case Access.WRITE:
            is_device = mount.path.is_relative_to("/dev")
            return ("--dev-bind" if is_device else "--bind", source, path)
        case Access.LINK:
            return ("--symlink", source, path)
        case Access.HIDDEN if mount.is_file:
            return ("--ro-bind", "/dev/null", path)
        case _:
            return ("--tmpfs", path)
