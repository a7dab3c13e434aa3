"""What the programs on the PATH need of their installations, wherever these are: a sandbox shows it, read-only."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_BIN: Final = ("bin", ".bin", "sbin", "shims")
_LIBRARIES: Final = ("lib", "lib32", "lib64", "libexec", "include")
_INSTALLED: Final = (
    *_LIBRARIES,
    *("node_modules", "package.json", "pyvenv.cfg", "install", "installs", "tools", "toolchains", "versions"),
    *("plugins", "platform", "share", "etc", "ssl", "src", "pkg", "conf", "jmods", "VERSION", "go.env"),
)
"""names beside a folder of programs that belong to the same installation"""
_FOR_ALL: Final = (".local", ".local/share", ".local/state", ".config", ".cache", "Library")
"""how folders of homes end that are those of no single program"""
_PACKAGES: Final = "node_modules"
_NAMING: Final = (
    *("JAVA_HOME", "GOROOT", "RUSTUP_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"),
)
"""variables that name an installation, or certificates"""
_LONGEST_SHEBANG: Final = 256
_MOST_LINKS: Final = 40


def real(path: Path) -> Path:
    """A path without links in it."""
    return Path(os.path.realpath(path))  # unlike resolve(), no RuntimeError where links go in a circle


@dataclass(frozen=True)
class Link:
    """A symbolic link on the way to something that is shown."""

    path: Path
    """without any link before its last part"""
    target: str


@dataclass
class Toolchains:
    """Finds what is to be shown of the folders that a sandbox covers by others.

    A home is never shown as a whole, nor is a folder in it that several programs share.
    """

    covered: tuple[Path, ...]
    """homes and folders for temporary files, without links in them"""
    tree: Path
    """what is below it can be seen in any case"""
    shown: dict[Path, None] = field(default_factory=dict)
    links: dict[Path, Link] = field(default_factory=dict)
    _seen: set[Path] = field(default_factory=set)

    def add_path(self, env: Mapping[str, str]) -> None:
        """Show what the programs on the PATH need."""
        for entry in env.get("PATH", "").split(os.pathsep):
            if entry.startswith("/") and not self._is_in_tree(entry):
                self.add_folder(self.follow(Path(entry)))
        for name in _NAMING:
            if env.get(name, "").startswith("/") and not self._is_in_tree(env[name]):
                self.show(self.follow(Path(env[name])))

    def _is_in_tree(self, path: str) -> bool:
        """Whether a path is one of the work tree, which is shown anyway: there a link could lead anywhere."""
        return self.tree in Path(os.path.normpath(path)).parents

    def add_program(self, path: Path) -> None:
        """Show a program or script, with the installation that it is part of."""
        program = self.follow(path)
        if not self._is_covered(program) or not program.is_file():
            return
        parts = program.parts
        if _PACKAGES in parts:
            self.show(Path(*parts[: parts.index(_PACKAGES) + 1]))
        elif program.parent.name in _BIN:
            self.add_folder(program.parent)
        else:
            self.show(program if self._is_shared(program.parent) or _is_versioned(program) else program.parent)

    def add_folder(self, folder: Path) -> None:
        """Show a folder of programs, what is beside it, and what its links and its scripts' interpreters lead to."""
        if folder in self._seen or self.tree in (folder, *folder.parents):
            return
        self._seen.add(folder)
        is_covered = self._is_covered(folder)
        if is_covered and not self._is_shared(folder):
            self._show_installation(folder)
        for name in _names(folder):
            path = folder / name
            if path.is_symlink():
                self.add_program(path)
            elif is_covered and (interpreter := _interpreter(path)):
                self.add_program(Path(interpreter))
                if self._is_shared(folder):
                    self.show(path)

    def _show_installation(self, folder: Path) -> None:
        prefix = folder.parent
        beside = [prefix / name for name in _INSTALLED if os.path.lexists(prefix / name)]
        if folder.name not in _BIN or not beside:
            self.show(folder)
        elif self._is_shared(prefix):
            for path in (folder, *(path for path in beside if path.name in _LIBRARIES)):
                self.show(path)
        elif prefix.name.startswith(".") and not (prefix / "pyvenv.cfg").exists():
            # a folder as ~/.cargo or ~/.docker may have a login beside its programs
            for path in (folder, *beside):
                self.show(path)
        else:
            self.show(prefix)
        if (folder / "rustup").exists():
            self.show(prefix.parent / ".rustup")

    def show(self, path: Path) -> None:
        """Show a path that the sandbox would cover, unless it is one that several programs share."""
        if self._is_covered(path) and not self._is_shared(path) and path.exists():
            self.shown[path] = None

    def _is_covered(self, path: Path) -> bool:
        return any(root in path.parents for root in self.covered)

    def _is_shared(self, path: Path) -> bool:
        """Whether a folder is that of no single program: a home, or what is above one."""
        own = any(path.match(name) for name in _FOR_ALL)
        return own or any(path == root or path in root.parents for root in self.covered) or path in self.tree.parents

    def follow(self, path: Path) -> Path:
        """A path without links; those on the way are noted."""
        for _ in range(_MOST_LINKS):
            found = next((up for up in (*reversed(path.parents), path) if up.is_symlink()), None)
            if found is None:
                break
            if self._is_covered(found):
                self.links[found] = Link(found, str(found.readlink()))
            path = Path(os.path.normpath(found.parent / found.readlink())) / path.relative_to(found)
        return real(path)


def _is_versioned(program: Path) -> bool:
    """Whether a file is in a work tree of somebody's own, of which nothing else is to be seen."""
    return any((up / ".git").exists() for up in program.parents)


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entry.name for entry in entries)
    except OSError:
        return


def _interpreter(path: Path) -> str:
    """What the first line of a script says it is run by; empty where it is no script."""
    try:
        with path.open("rb") as file:
            line = file.read(_LONGEST_SHEBANG).split(b"\n", 1)[0]
    except OSError:
        return ""
    words = os.fsdecode(line.removeprefix(b"#!")).split() if line.startswith(b"#!") else []
    return words[0] if words and words[0].startswith("/") else ""
