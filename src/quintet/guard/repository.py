"""What a snapshot reads of the repository itself: where it is, its refs, its own files, its objects."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import files, git
from quintet.errors import GitError, NotGuarded
from quintet.guard.store import Deadline, Store
from quintet.layout import GITIGNORE

GUARDED_REFS: Final = ("refs/heads/", "refs/tags/", "refs/stash")
STASH_LOG: Final = "common/logs/refs/stash"
_OF_WORK_TREE: Final = (
    *("HEAD", "index", "config.worktree", "info/sparse-checkout", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "BISECT_START", "rebase-merge", "rebase-apply", "sequencer"),
    *("commondir", "gitdir"),
)
SUBMODULE: Final = "submodule "
"""the beginning of the state of a repository whose git folder is in that of the project, where git has made it"""
_GITDIR: Final = b"gitdir:"
_SMALL: Final = 10_000
_SHARED: Final = ("config", "hooks", "info/exclude", "info/attributes", "info/grafts", "logs/refs/stash", "shallow")


@dataclass(frozen=True)
class Place:
    """A project and the repository that it is in."""

    tree: str
    """the guarded folder"""
    top: str
    """the work tree that it belongs to"""
    git_dir: str
    common: str
    """the git folder that all work trees of the repository share; mostly the same"""
    format: str
    """of object names: sha1 or sha256"""
    ignore_case: str
    excludes: str
    """the user's own ignore file for all repositories"""

    @property
    def prefix(self) -> str:
        """The way from the top to the guarded folder, with a slash at its end; empty where both are the same."""
        way = os.path.relpath(self.tree, self.top)
        return "" if way == "." else f"{way}/"

    def path(self, name: str) -> Path:
        """Where a file of the repository is that a snapshot calls `git/NAME`, `common/NAME` or `top/.git`."""
        root, _, rest = name.partition("/")
        return Path(self.roots[root], rest)

    @property
    def roots(self) -> dict[str, str]:
        """The folders that the names of the repository's own files begin with."""
        return {"git": self.git_dir, "common": self.common, "top": self.top}

    @property
    def env(self) -> dict[str, str]:
        """The variables that name this repository, whatever `.git` in the tree has become."""
        return {"GIT_DIR": self.git_dir, "GIT_WORK_TREE": self.top}


def locate(tree: Path, deadline: Deadline) -> Place:
    """Find the repository of a folder; NotGuarded where there is none that git would use."""
    tree = Path(os.path.realpath(tree))
    what = ("--show-toplevel", "--git-dir", "--git-common-dir", "--show-object-format")
    try:
        found = git.run(tree, "rev-parse", "--path-format=absolute", *what, seconds=deadline.left).text.split("\n")
        config = git.run(tree, "config", "-z", "--get-regexp", r"^core\.(ignorecase|excludesfile)$", check=False)
    except GitError as error:
        raise NotGuarded(f"{tree} cannot be guarded: {error}") from error
    if len(found) != len(what):
        raise NotGuarded(f"{tree} cannot be guarded: the name of a folder on the way contains a line end")
    values = dict(part.split("\n", 1) for part in config.parts if "\n" in part)
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    excludes = os.path.expanduser(values.get("core.excludesfile", f"{home}/git/ignore"))  # noqa: PTH111 - git's own form
    top, git_dir, common, form = found
    return Place(str(tree), top, git_dir, common, form, values.get("core.ignorecase", "false"), excludes)


def is_found(place: Place, deadline: Deadline) -> bool:
    """Whether git finds the same work tree as before: its config can name another one, or none."""
    try:
        found = locate(Path(place.tree), deadline)
    except NotGuarded:
        return False
    return found.top == place.top or found.git_dir != place.git_dir


def head_and_refs(place: Place, deadline: Deadline) -> tuple[str, dict[str, str]]:
    """HEAD (`ref: NAME`, or a commit where it is detached) and all refs by name; GitError where git cannot tell."""
    folder, form = Path(place.top), "--format=%(refname)%00%(objectname)%00%(symref)"
    rows = git.run(folder, "for-each-ref", form, env=place.env, seconds=deadline.left).text
    refs = {}
    for row in filter(None, rows.split("\n")):  # a name may contain what other systems end lines with
        name, commit, link = row.split("\0")
        refs[name] = f"ref: {link}" if link else commit
    head = git.run(folder, "symbolic-ref", "--quiet", "HEAD", env=place.env, check=False)
    if head.code == 0:
        return f"ref: {head.text}", refs
    return git.run(folder, "rev-parse", "--verify", "HEAD", env=place.env).text, refs


def staged(place: Place, deadline: Deadline) -> bytes:
    """The index as git lists it: a tag for flags, mode, object, stage and path of each entry."""
    options = ("ls-files", "-z", "--stage", "-v", "--full-name")
    return git.run(Path(place.top), *options, env=place.env, seconds=deadline.left).out


def git_files(place: Place) -> dict[str, list[str]]:
    """The names of the repository's own files that are guarded, in its own git folder and in the shared one."""
    shared_index = [path.name for path in Path(place.git_dir).glob("sharedindex.*")]
    own = [found for name in (*_OF_WORK_TREE, *shared_index) for found in _below(place.git_dir, name)]
    shared = [found for name in _SHARED for found in _below(place.common, name)]
    return {"git": own, "common": shared, "top": [".git"]}


def ref_files(place: Place) -> list[str]:
    """The names of the files that git keeps refs in, relative to the shared git folder."""
    own = os.path.relpath(place.git_dir, place.common)
    names = ("refs", "packed-refs", "reftable", *((f"{own}/refs", f"{own}/reftable") if own != "." else ()))
    return [found for name in names for found in _below(place.common, name)]


def is_usable(place: Place) -> bool:
    """Whether the folders are there without which git takes a folder for no repository."""
    return all(os.access(f"{place.common}/{name}", os.X_OK) for name in ("objects", "refs"))


def _below(folder: str, name: str) -> Iterator[str]:
    try:
        with os.scandir(f"{folder}/{name}") as entries:
            names = [f"{name}/{entry.name}" for entry in entries]
    except NotADirectoryError:
        yield name
    except OSError:
        return
    else:
        for inner in names:
            yield from _below(folder, inner)


def nested_states(place: Place, path: str, store: Store, deadline: Deadline) -> Iterator[tuple[str, str]]:
    """A submodule or nested repository and those inside of it, each with a digest of its files; empty without `.git`.

    An agent may have written its config, which names programs that git runs there: so git never runs in it. The
    store's own repository lists its files.
    """
    folder = Path(place.top, path)
    if not os.path.lexists(folder / ".git"):
        yield path, ""
        return
    env = {"GIT_DIR": str(store.git), "GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(store.git / "no-index")}
    form = ("ls-files", "-z", "--others", f"--exclude-per-directory={GITIGNORE}")
    git_dir = _git_dir(folder / ".git", store, deadline)
    hashed = hashlib.blake2b(_git_data(git_dir, store, deadline), digest_size=20)
    for name in git.run(folder, *form, env=env, seconds=deadline.left).parts:
        if name.endswith("/"):
            yield from nested_states(place, f"{path}{name}", store, deadline)
            continue
        with suppress(OSError):
            found = os.lstat(folder / name)
            times = f"{found.st_mtime_ns} {found.st_ctime_ns}"
            hashed.update(os.fsencode(f"{name}\0{found.st_mode} {found.st_size} {times}\0"))
    is_of_project = git_dir.is_relative_to(os.path.realpath(place.common)) and git_dir.is_dir()
    yield path, f"{SUBMODULE if is_of_project else ''}{hashed.hexdigest()}"


def _git_dir(dot_git: Path, store: Store, deadline: Deadline) -> Path:
    """The git folder that a `.git` is, or that it names where it is a file."""
    said = _small_file(dot_git, store, deadline)
    if not said.startswith(_GITDIR):
        return dot_git
    return Path(os.path.realpath(dot_git.parent / os.fsdecode(said.removeprefix(_GITDIR).strip())))


def _git_data(git_dir: Path, store: Store, deadline: Deadline) -> bytes:
    """What tells the commit and the settings of a nested repository, read as data."""
    head = _small_file(git_dir / "HEAD", store, deadline)
    branch = os.fsdecode(head.removeprefix(b"ref:").strip())
    names = ("config", "packed-refs", *([branch] if branch.startswith("refs/") and ".." not in branch else ()))
    entries = [store.observe(str(git_dir / name), deadline) for name in names]
    return b"\0".join([os.fsencode(git_dir), head, *(entry.digest.encode() for entry in entries if entry)])


def _small_file(path: Path, store: Store, deadline: Deadline) -> bytes:
    entry = store.observe(str(path), deadline)
    return store.read(entry) if entry and entry.digest and stat.S_ISREG(entry.mode) and entry.size < _SMALL else b""


def prepare(store: Store, place: Place) -> None:
    """Make the store's own repository one of the same object format, also where somebody has removed it."""
    store.make_folders()
    version, more = (1, f"[extensions]\n\tobjectFormat = {place.format}\n") if place.format != "sha1" else (0, "")
    text = f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = true\n\tsharedRepository = 0600\n{more}"
    for name, content in (("config", text), ("HEAD", "ref: refs/heads/none\n")):
        if not (store.git / name).exists():
            files.write(store.git / name, content)


def keep_objects(place: Place, store: Store) -> bool:
    """Link every object of the repository into the store, so that old commits outlive `gc` and a deleted `.git`.

    False where that is not possible: the store is on another file system.
    """
    try:
        _link_missing(Path(place.common, "objects"), store.git / "objects")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def put_objects_back(place: Place, store: Store) -> None:
    """Link what the repository has lost of its objects back into it."""
    _link_missing(store.git / "objects", Path(place.common, "objects"))


def _link_missing(source: Path, target: Path) -> None:
    for name in sorted(_names(source)):
        if len(name) == 2 or name == "pack":  # noqa: PLR2004 - the first byte of an object's name
            missing = _names(source / name) - (_names(target / name) if (target / name).is_dir() else set())
            for file in _in_order(missing):
                (target / name).mkdir(exist_ok=True)
                _link(source / name / file, target / name / file)


def _in_order(names: Iterable[str]) -> list[str]:
    """An index behind its pack, so that git never sees one without the other."""
    return sorted((name for name in names if not name.startswith("tmp_")), key=lambda name: name.endswith(".idx"))


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (FileExistsError, FileNotFoundError):
        return


def _names(folder: Path) -> set[str]:
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}
