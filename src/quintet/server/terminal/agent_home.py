"""The home that an agent gets in a sandbox: private copies of its CLI's own folders, and git's identity.

What the user has there works as usual, hooks and servers of tools among it, but inside only: nothing that an agent
changes in it is ever read outside.
"""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from quintet import files
from quintet.providers.private_home import FOLDER, PrivateHome
from quintet.providers.registration import Registration
from quintet.sandbox.identity import write_git_identity
from quintet.server.terminal.logins import remember_logins

LARGEST_FILE: Final = 32 << 20
"""bytes of a file that is copied"""
_CACHE: Final = "~/.cache/"


def make_agent_home(
    terminal: Path, registration: Registration, env: Mapping[str, str], tree: Path, previous: Path | None
) -> PrivateHome:
    """Make the home of a terminal's agent, or go on with that of a lost terminal, where the conversations are."""
    user = Path(env.get("HOME") or Path.home())
    home = PrivateHome.make(terminal, user)
    if previous is None or not _take_over(previous / FOLDER, home.folder):
        for source, target in _own_folders(registration, env, user):
            files.make_folder(home.folder / target, home.folder)
            if source is not None:
                _Copying(home.folder, registration.histories).folder(source, home.folder / target)
        _copy_files(registration, env, user, home.folder)
    write_git_identity(home.folder, tree, env)
    logins = [(_expand(by, user), in_home(name)) for by, name in _login_files(registration, env)]
    remember_logins(terminal, logins)
    return home


def give_back(terminal: Path, previous: Path) -> None:
    """Let a lost terminal have its home again, because the new one could not be started."""
    if PrivateHome.of(terminal) is not None and not os.path.lexists(previous / FOLDER):
        _take_over(terminal / FOLDER, previous / FOLDER)


def in_home(path: str) -> str:
    """A path that begins with `~/`, as one in the home."""
    return path.removeprefix("~/")


def _take_over(old: Path, new: Path) -> bool:
    """Move a home as a whole: what an agent has made in it is not looked at."""
    try:
        with suppress(FileNotFoundError):
            new.rmdir()
        old.rename(new)
    except OSError:
        files.make_folder(new)
        return False
    return True


def _own_folders(registration: Registration, env: Mapping[str, str], user: Path) -> list[tuple[Path | None, str]]:
    """The CLI's own folders: where the user has each, and where it is in the agent's home. Caches begin empty."""
    found = zip(registration.homes_in(env), registration.homes, strict=True)
    return [(None if name.startswith(_CACHE) else _expand(by, user), in_home(name)) for by, name in found]


def _login_files(registration: Registration, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Where the user has each login file, and its usual path."""
    homes = dict(zip(registration.homes, registration.homes_in(env), strict=True))
    found = []
    for name in registration.login_files:
        usual = next((home for home in homes if name.startswith(f"{home}/")), "")
        found.append((f"{homes[usual]}{name.removeprefix(usual)}" if usual else name, name))
    return found


def _copy_files(registration: Registration, env: Mapping[str, str], user: Path, home: Path) -> None:
    named = env.get(registration.home_variable, "")
    for name in registration.own_files:
        source = Path(named) / Path(name).name if named else _expand(name, user)
        _Copying(home, ()).file(source, home / in_home(name))


def _expand(path: str, user: Path) -> Path:
    return user / in_home(path) if path.startswith("~/") else Path(path)


@dataclass
class _Copying:
    """A copy of a folder in which links were the user's own: what they lead to is copied. It has limits."""

    below: Path
    left_out: tuple[str, ...]
    """names in the folder itself"""
    most_files: int = 20_000
    most_bytes: int = 256 << 20

    def folder(self, source: Path, target: Path, above: tuple[Path, ...] = ()) -> None:
        """Copy a folder; a link that leads back to one that contains it is skipped."""
        found = Path(os.path.realpath(source))
        if found in above:
            return
        with suppress(OSError), os.scandir(found) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not above and any(fnmatchcase(entry.name, name) for name in self.left_out):
                    continue
                if entry.is_dir():
                    files.make_folder(target / entry.name, self.below)
                    self.folder(Path(entry.path), target / entry.name, (*above, found))
                else:
                    self.file(Path(entry.path), target / entry.name)

    def file(self, source: Path, target: Path) -> None:
        """Copy a regular file, unless it is large or there were too many."""
        found = Path(os.path.realpath(source))
        with suppress(OSError):
            status = found.stat()
            small = stat.S_ISREG(status.st_mode) and status.st_size <= min(LARGEST_FILE, self.most_bytes)
            if small and self.most_files:
                self.most_files -= 1
                self.most_bytes -= status.st_size
                files.duplicate(found, target, self.below)
