"""What a sandbox shows of a machine: the work tree, programs with what they need, and a home of the program's own.

Everything else in the home of the user, and in the folders for temporary files, cannot be seen.
"""

import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import files
from quintet.layout import TMP, user_state_folder
from quintet.sandbox.mounts import TEMPORARY, Access, Mount, arrange
from quintet.sandbox.private_git import git_mounts
from quintet.sandbox.toolchains import Toolchains, real

WAYS_OUT: Final = (
    *("/run/docker.sock", "/run/podman", "/run/containerd", "/run/dbus", "/run/systemd/private"),
    *("/run/screen", "/run/tmux", "/run/user"),
)
"""sockets of services that would start a program outside for whoever asks"""
_HIDDEN_BY_NAME: Final = (
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"),
    *("KUBECONFIG", "DOCKER_CONFIG", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AZURE_CONFIG_DIR"),
    *("CLOUDSDK_CONFIG", "GNUPGHOME", "NETRC", "PGPASSFILE", "NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "BOTO_CONFIG"),
)
"""variables by which a user keeps settings and logins outside of the home"""
CACHES: Final = (
    *(".cache", ".npm", ".yarn", ".local/share/pnpm/store", ".cargo/registry", ".cargo/git", "go/pkg", ".gradle"),
    *(".m2/repository", ".ivy2", ".sbt", ".nuget", ".bundle", ".pub-cache", ".conan2"),
)
"""where programs in a home keep packages"""
_TEMPORARY: Final = (TEMPORARY, Path("/var/tmp"))  # noqa: S108 - the names inside


@dataclass(frozen=True)
class Wishes:
    """Paths beside those that every sandbox has. They may begin with `~/`, or be relative to the work tree."""

    write: Sequence[str] = ()
    hide: Sequence[str] = ()
    show: Sequence[str] = ()
    """to be seen although they would be hidden"""


@dataclass(frozen=True)
class SandboxPlaces:
    """The folders that a sandbox is about."""

    tree: Path
    scratch: Path
    """the program's own folder for temporary files"""
    tmp: Path | None = None
    """what the program has as `.tmp` in the work tree"""
    home: Path | None = None
    """what the program has as its home; None: an empty folder that is gone in the end"""
    private: Sequence[str] = ()
    """folders in the home, as paths in it, that are no part of the caches"""
    caches: Path | None = None
    """where packages are kept for the programs of several sandboxes"""
    programs: Sequence[str] = ()
    """programs and scripts to be shown beside those on the PATH"""
    read: Sequence[Path] = ()
    """folders of ours to read"""
    own: Sequence[Path] = ()
    """folders of ours to write to"""
    wishes: Wishes = Wishes()
    git: Path | None = None
    """the private git folder that `make_private_git` has made; without one the repository can only be read"""

    def mounts(self, env: Mapping[str, str]) -> list[Mount]:
        """All mounts; of two for one path the later one counts."""
        home = Path(env.get("HOME") or Path.home())
        tools = self._tools(env, home)
        elsewhere = (real(Path(env[name])) for name in _HIDDEN_BY_NAME if env.get(name, "").startswith("/"))
        hidden = [*map(Path, WAYS_OUT), *(path for path in elsewhere if real(home) not in path.parents)]
        hide = [*hidden, user_state_folder(), *_expand(self.wishes.hide, home, self.tree)]
        show = [tools.follow(path) for path in _expand(self.wishes.show, home, self.tree)]
        write = [tools.follow(path) for path in _expand(self.wishes.write, home, self.tree)]
        tree = real(self.tree)
        return [
            *self._home_mounts(real(home)),
            *(Mount(real(path), Access.WRITE, real(self.scratch)) for path in _TEMPORARY if path.is_dir()),
            *_mounts(map(real, hide), Access.HIDDEN),
            *_mounts(tools.shown, Access.READ),
            *self._cache_mounts(real(home), tools),
            *_mounts(show, Access.READ),
            *_mounts(write, Access.WRITE),
            *(Mount(link.path, Access.LINK, Path(link.target)) for link in tools.links.values()),
            *git_mounts(self.tree, self.git),
            Mount(tree, Access.WRITE),
            *(Mount(real(path), Access.READ) for path in self.read),
            *(Mount(real(path), Access.WRITE) for path in self.own),
            *([Mount(tree / TMP, Access.WRITE, real(self.tmp))] if self.tmp else []),
            # agents must not change what Quintet itself is run from
            *(Mount(path, Access.READ) for path in (real(Path(sys.prefix)),) if tree in path.parents),
        ]

    def _tools(self, env: Mapping[str, str], home: Path) -> Toolchains:
        """What programs need, ours among them."""
        tools = Toolchains(tuple(dict.fromkeys((*_homes(home), *map(real, _TEMPORARY)))), real(self.tree))
        for path in (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2]):
            tools.show(tools.follow(path))
        tools.add_path(env)
        for path in map(Path, self.programs):
            tools.add_program(path)
        return tools

    def _home_mounts(self, home: Path) -> Iterator[Mount]:
        for other in _homes(home)[1:]:
            yield Mount(other, Access.HIDDEN)
        if home.is_dir() and home != home.parent:
            yield Mount(home, Access.WRITE, real(self.home)) if self.home else Mount(home, Access.FRESH)

    def _cache_mounts(self, home: Path, tools: Toolchains) -> Iterator[Mount]:
        for name in CACHES if self.caches and home.is_dir() else ():
            path = home / name
            if self.caches and not any(up in tools.shown for up in (path, *path.parents)):
                files.make_folder(self.caches)
                files.make_folder(self.caches / name, self.caches)
                yield Mount(path, Access.WRITE, real(self.caches) / name)
        for name in self.private if self.home else ():
            if self.home and any(name.startswith(f"{cache}/") for cache in CACHES):
                yield Mount(home / name, Access.WRITE, real(self.home) / name)


def clear_mount_points(wanted: Iterable[Mount]) -> None:
    """Remove links from the ways to mount points in folders that earlier agents could write to.

    Bubblewrap would follow them, and make the mount point somewhere else.
    """
    mounts = arrange(wanted)
    by_path = {mount.path: mount for mount in mounts}
    for mount in mounts:
        around = next((by_path[up] for up in mount.path.parents if up in by_path), None)
        if around is None or around.access is not Access.WRITE or around.source is None:
            continue
        names = mount.path.relative_to(around.path).parts
        for depth in range(1, len(names) + 1):
            _remove_link(around.source.joinpath(*names[:depth]), around.source)


def _remove_link(path: Path, below: Path) -> None:
    with suppress(OSError):
        found = files.look(path, below)
        if found is not None and stat.S_ISLNK(found.st_mode):
            files.remove(path, below)


def _homes(home: Path) -> list[Path]:
    """The home, and that of the user database where it is another one."""
    found = [real(home)]
    with suppress(KeyError):
        found.append(real(Path(pwd.getpwuid(os.getuid()).pw_dir)))
    return [path for path in dict.fromkeys(found) if path != path.parent and path.is_dir()]


def _expand(paths: Iterable[str], home: Path, tree: Path) -> Iterator[Path]:
    for text in filter(None, paths):
        yield home / text[2:] if text.startswith("~/") else home if text == "~" else tree / text


def _mounts(paths: Iterable[Path], access: Access) -> Iterator[Mount]:
    """Mounts for those paths that exist."""
    for path in paths:
        if os.path.exists(path) and path != path.parent:  # noqa: PTH110 - Path.exists() raises where it may not look
            yield Mount(path, access, is_file=not path.is_dir())
