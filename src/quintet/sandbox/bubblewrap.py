"""Whether bubblewrap can make a sandbox on this machine, and if not, what is missing."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from quintet.errors import SandboxError
from quintet.own_programs import find_program
from quintet.sandbox.mounts import Access, Mount, bwrap_arguments

PROGRAM: Final = "bwrap"
_SECONDS: Final = 20.0
_INSTALL: Final = {
    "apt-get": "apt-get install bubblewrap",
    "dnf": "dnf install bubblewrap",
    "pacman": "pacman -S bubblewrap",
    "apk": "apk add bubblewrap",
    "zypper": "zypper install bubblewrap",
}
_SWITCHES: Final = (
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap",
    ),
)
"""settings of the kernel with the value that forbids user namespaces, and what allows them"""


@dataclass(frozen=True)
class Bubblewrap:
    """A bubblewrap that works here."""

    program: str
    version: str
    flags: tuple[str, ...] = ()
    """what it needs here in addition"""


def find_bubblewrap() -> Bubblewrap:
    """The bubblewrap of this machine, tried out; SandboxError says what is missing and how to get it."""
    if not sys.platform.startswith("linux"):
        raise SandboxError("it needs Linux", "leave SANDBOX off, or run Quintet in a container or virtual machine")
    program = find_program(PROGRAM)
    if program is None:
        found = next((how for name, how in _INSTALL.items() if shutil.which(name)), "install bubblewrap")
        raise SandboxError(f"bubblewrap is not installed: {PROGRAM} is not on the PATH", found)
    return _try(program)


@lru_cache(maxsize=8)
def _try(program: str) -> Bubblewrap:
    version = _run([program, "--version"]).stdout.removeprefix("bubblewrap ").strip()
    said = ""
    # root needs no user namespace, unless it is that of a container with few rights
    for flags in ((), ("--unshare-user",)):
        tried = _run([program, *flags, *_sample(), "true"])
        if tried.returncode == 0:
            return Bubblewrap(program, version, flags)
        said = said or (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
    raise SandboxError(*explain(said))


def _sample() -> list[str]:
    """The arguments of a sandbox with one mount of each kind."""
    kinds = {"/etc": Access.READ, "/usr": Access.WRITE, "/opt": Access.FRESH, "/srv": Access.HIDDEN}
    mounts = [Mount(Path(path), access) for path, access in kinds.items() if Path(path).is_dir()]
    return bwrap_arguments(mounts, Path("/"), is_root=os.getuid() == 0)


def explain(said: str, kernel: Path = Path("/proc/sys")) -> tuple[str, str]:
    """What is wrong and what to do about it, from what bubblewrap says and how the kernel is set."""
    for name, forbids, allow in _SWITCHES:
        try:
            value = (kernel / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if value == forbids:
            setting = name.replace("/", ".")
            return f"the kernel forbids user namespaces ({setting} is {value}): {said}", f"as root: {allow}"
    if "mount proc" in said:
        where = "a container with a masked /proc"
        return f"{where}: {said}", "start the container with --security-opt systempaths=unconfined"
    container = "in a container: allow user namespaces to it (--security-opt seccomp=unconfined, or --privileged)"
    return f"the kernel forbids namespaces: {said}", container


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", f"{PROGRAM}: {error}")
