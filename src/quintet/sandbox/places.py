"""Which paths of a machine a sandbox lets its program write to, and which it hides."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet.layout import TMP, user_state_folder
from quintet.sandbox.mounts import TEMPORARY, Access, Mount
from quintet.sandbox.private_git import git_mounts

SECRETS: Final = (
    *("~/.ssh", "~/.aws", "~/.gnupg", "~/.config/gh", "~/.netrc", "~/.docker", "~/.kube", "~/.azure"),
    *("~/.config/gcloud", "~/.config/hub", "~/.config/op", "~/.git-credentials", "~/.config/git/credentials"),
    *("~/.pypirc", "~/.pgpass", "~/.my.cnf", "~/.vault-token", "~/.terraform.d", "~/.password-store"),
    *("~/.local/share/keyrings", "~/.kde/share/apps/kwallet", "~/.local/share/kwalletd", "~/.Xauthority"),
    *("~/.cargo/credentials.toml", "~/.cargo/credentials", "~/.gem/credentials"),
)
BROWSERS: Final = (
    *("~/.mozilla", "~/.config/google-chrome", "~/.config/chromium", "~/.config/BraveSoftware"),
    *("~/.config/microsoft-edge", "~/.config/vivaldi", "~/.config/opera", "~/.thunderbird"),
    *("~/.cache/mozilla", "~/.cache/google-chrome", "~/.cache/chromium", "~/.cache/BraveSoftware"),
    *("~/snap/firefox", "~/snap/chromium", "~/.var/app"),
)
OTHER_AGENTS: Final = ("~/.aider", "~/.config/github-copilot", "~/.continue", "~/.codeium")
"""the folders of agent CLIs that Quintet does not drive"""
WAYS_OUT: Final = (
    *("/run/docker.sock", "/run/podman", "/run/containerd", "/run/dbus", "/run/systemd/private"),
    *("/run/screen", "/run/tmux", "/run/user"),
)
"""sockets of services that would start a program outside for whoever asks"""
CACHES: Final = (
    *("~/.cache", "~/.npm", "~/.local/share/pnpm", "~/.yarn", "~/.bun/install/cache", "~/.deno"),
    *("~/.cargo/registry", "~/.cargo/git", "~/go/pkg", "~/.gradle", "~/.m2/repository", "~/.ivy2", "~/.sbt"),
    *("~/.nuget", "~/.gem", "~/.bundle", "~/.pub-cache", "~/.conan2", "~/.julia"),
)
_CACHE_VARIABLES: Final = ("XDG_CACHE_HOME", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "GOMODCACHE")
_BIN: Final = ("bin", ".bin", "sbin")
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
    homes: Sequence[str] = ()
    """what the program writes to by itself"""
    foreign: Sequence[str] = ()
    """what belongs to other programs and is none of its business"""
    own: Sequence[Path] = ()
    """more folders of ours to write to"""
    wishes: Wishes = Wishes()
    git: Path | None = None
    """the private git folder that `make_private_git` has made; without one the repository can only be read"""

    def mounts(self, env: Mapping[str, str]) -> list[Mount]:
        """All mounts; of two for one path the later one counts."""
        home = Path(env.get("HOME") or Path.home())
        caches = (*CACHES, *(env[name] for name in _CACHE_VARIABLES if env.get(name, "").startswith("/")))
        hidden = (*SECRETS, *BROWSERS, *OTHER_AGENTS, *WAYS_OUT, env.get("SSH_AUTH_SOCK", ""), *self.foreign)
        return [
            *_mounts(["~"], Access.READ, home, self.tree),  # where it is in the folder for temporary files
            *_mounts(_program_folders(env, real(self.tree)), Access.READ, home, self.tree),
            *_mounts(caches, Access.WRITE, home, self.tree),
            *_mounts(hidden, Access.HIDDEN, home, self.tree),
            *_mounts([env.get("XDG_RUNTIME_DIR", "")], Access.FRESH, home, self.tree),
            *_mounts([str(user_state_folder())], Access.HIDDEN, home, self.tree),
            *(Mount(real(path), Access.WRITE, real(self.scratch)) for path in _TEMPORARY if path.is_dir()),
            *_mounts(self.homes, Access.WRITE, home, self.tree),
            *_mounts(self.wishes.hide, Access.HIDDEN, home, self.tree),
            *_mounts(self.wishes.show, Access.READ, home, self.tree),
            *_mounts(self.wishes.write, Access.WRITE, home, self.tree),
            *git_mounts(self.tree, self.git),
            Mount(real(self.tree), Access.WRITE),
            *(Mount(real(path), Access.WRITE) for path in self.own),
            *([Mount(real(self.tree) / TMP, Access.WRITE, real(self.tmp))] if self.tmp else []),
        ]


def real(path: Path) -> Path:
    """A path without links in it."""
    return Path(os.path.realpath(path))  # unlike resolve(), no RuntimeError where links go in a circle


def _program_folders(env: Mapping[str, str], tree: Path) -> list[str]:
    """List the folders with programs, Quintet's own and those on the PATH, that the sandbox's `/tmp` would cover."""
    covered = [real(place) for place in _TEMPORARY]
    own = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2])
    on_path = (real(Path(entry)) for entry in env.get("PATH", "").split(os.pathsep) if entry.startswith("/"))
    # with the libraries of its programs, which are beside `bin`
    around = (entry.parent if entry.name in _BIN and entry.parent not in covered else entry for entry in on_path)
    folders = [path for path in map(real, (*own, *around)) if any(place in path.parents for place in covered)]
    return [str(path) for path in folders if tree not in (path, *path.parents)]  # the tree's own stay writable


def _mounts(paths: Iterable[str], access: Access, home: Path, tree: Path) -> Iterator[Mount]:
    """Mounts for those paths that exist."""
    for text in filter(None, paths):
        path = real(home / text[2:] if text.startswith("~/") else home if text == "~" else tree / text)
        if os.path.exists(path) and path != path.parent:  # noqa: PTH110 - Path.exists() raises where it may not look
            yield Mount(path, access, is_file=not path.is_dir())
