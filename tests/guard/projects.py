"""A project on real git, with a store beside it, and what a test does with both."""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from quintet.guard import Change, Rules, Snapshot, Split, Store, Undone, compare, look, take, undo

NOTHING = Rules()
PROTECTED = ("quintet.json", ".quintet/**")
EVERYTHING = Rules(may_change=("**",), may_commit=True, protect=PROTECTED)
OPENSPEC = Rules(may_change=("openspec/**",))
USER = ("-c", "user.name=user", "-c", "user.email=user@localhost", "-c", "commit.gpgSign=false")


def git(folder: Path, *arguments: str) -> str:
    """A git command of the user or of an agent."""
    done = subprocess.run(["git", *USER, *arguments], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


@dataclass
class Project:
    """A repository with committed, staged, dirty, untracked and ignored files."""

    tree: Path
    store: Store
    patch: Path
    before: Snapshot | None = None
    protect: tuple[str, ...] = PROTECTED
    undone: Undone | None = field(default=None)

    def git(self, *arguments: str) -> str:
        return git(self.tree, *arguments)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def take(self, **options: object) -> Snapshot:
        self.before = take(self.tree, self.store, "turn", protect=self.protect, cache=self.before, **options)  # type: ignore[arg-type]
        return self.before

    def changes(self) -> tuple[Change, ...]:
        assert self.before
        return compare(self.before, look(self.before, self.store))

    def kinds(self) -> set[str]:
        return {f"{change.area} {change.kind} {change.name}" for change in self.changes()}

    def split(self, rules: Rules) -> Split:
        return rules.split(self.changes())

    def undo(self, rules: Rules = NOTHING) -> Undone:
        assert self.before
        self.undone = undo(self.split(rules), self.before, self.store, self.patch)
        return self.undone


def make(folder: Path) -> Project:
    """The project in its usual state: a commit, a staged and a dirty file, an untracked and an ignored one, a stash."""
    tree = folder / "project"
    shutil.copytree(_usual_tree(), tree, symlinks=True)
    return _project(folder, tree)


def _project(folder: Path, tree: Path) -> Project:
    return Project(tree, Store(folder / "state" / "store"), folder / "archive" / "003-tester-undone.patch")


@cache
def _usual_tree() -> Path:
    """The tree of that project, to be copied: git takes ten times as long to make another."""
    kept = tempfile.TemporaryDirectory()
    atexit.register(kept.cleanup)
    tree = Path(kept.name) / "project"
    tree.mkdir()
    project = _project(Path(kept.name), tree)
    project.git("init", "--quiet", "--initial-branch=main", "--template=")
    project.write(".git/hooks/pre-push", "#!/bin/sh\n").chmod(0o755)
    project.write(".git/info/exclude", "*.swp\n")
    project.write(".gitignore", "*.o\n/build/\n")
    project.write("src/main.c", "int main;\n")
    project.write("src/deep/er/util.c", "util\n")
    project.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    project.write("image.bin", bytes(range(256)) * 8)
    (tree / "link").symlink_to("src/main.c")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "one")
    project.git("branch", "side")
    project.git("tag", "v1")
    project.write("src/main.c", "stashed\n")
    project.git("stash")
    project.write("src/main.c", "dirty\n")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    project.write("staged.txt", "staged, then dirty\n")
    project.write("notes/untracked.txt", "mine\n")
    project.write("build/out.o", "ignored\n")
    return tree


State = dict[str, object]


def state(project: Project) -> State:
    """Everything that a user sees of a project: files with bytes, modes and links, and git's own view."""
    return state_of(project.tree)


def state_of(tree: Path) -> State:
    """The same for a folder."""
    found: State = {}
    for folder, folders, names in os.walk(tree):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *names):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            bytes_ = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(tree))] = (mode, bytes_)
    for words in (
        ("for-each-ref",),
        ("ls-files", "--stage", "-v"),
        ("symbolic-ref", "HEAD"),
        ("rev-parse", "HEAD"),
        ("stash", "list"),
        ("config", "--local", "--list"),
        ("status", "--porcelain", "--ignored"),
    ):
        found[" ".join(words)] = subprocess.run(
            ["git", "--no-optional-locks", *words], cwd=tree, capture_output=True, check=False
        ).stdout
    hooks = tree / ".git" / "hooks"
    if hooks.is_dir():
        found["hooks"] = {path.name: (path.stat().st_mode, path.read_bytes()) for path in hooks.iterdir()}
    return found


Deed = Callable[[Project], object]
"""what an agent does in its turn"""
