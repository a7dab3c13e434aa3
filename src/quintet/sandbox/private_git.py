"""The git folder that the agents of a run have to themselves, in place of the user's.

It is a clone without objects of its own: those of the user's repository are mounted into it, to be read. Inside the
sandbox it lies over the user's git folder, so that no agent can write what git or Quintet use outside. What agents
commit stays in it.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import files, git
from quintet.errors import GitError, SandboxError
from quintet.sandbox.mounts import Access, Mount

_DOT_GIT: Final = ".git"
_MOUNTS: Final = "mounts.json"
"""written last: a folder without it was left half made"""
_USERS: Final = "users"
"""the folder in the clone that the user's objects are mounted in"""
_LARGEST: Final = 100_000_000
_LIST_SECONDS: Final = 600.0
_STATE: Final = (
    *("HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD"),
    *("commondir", "gitdir", "shallow", "info/exclude", "info/attributes", "info/sparse-checkout", "info/grafts"),
)
_KEYS: Final = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|worktree|logallrefupdates|ignorecase|precomposeunicode|symlinks"
    r"|autocrlf|eol|safecrlf|quotepath|abbrev|sparsecheckout|sparsecheckoutcone|checkstat|trustctime|whitespace)"
    r"|extensions\.(objectformat|partialclone|noop)|(user|author|committer|branch|filter|diff|merge|submodule|index"
    r"|status|i18n|pull)\..*|remote\..*\.(url|fetch|promisor|partialclonefilter)",
    re.DOTALL,
)
"""settings of the repository that agents get: none can contain a password, but for a URL, which is freed of it"""
_PASSWORD: Final = re.compile(r"(https?://)[^/@\s]*@")
_INCLUDES: Final = re.compile(r"include\.path|includeif\..*\.path", re.DOTALL)
_RUNS: Final = re.compile(
    r"filter\..*\.(clean|smudge|process)|diff\.(external|.*\.(command|textconv))|merge\..*\.driver"
    r"|core\.(sshcommand|gitproxy)|credential\.(.*\.)?helper|gpg\.(.*\.)?program",
    re.DOTALL,
)
"""settings that are commands"""
_WORDS: Final = re.compile(r"[\s'\"`;|&()<>!=]+")
_NOT_COPIED: Final = ("refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""what belongs to one work tree, or is the user's own unfinished work"""


@dataclass(frozen=True)
class _Repository:
    """Where the repository of a work tree is."""

    top: Path
    own: Path
    """the git folder of this work tree"""
    common: Path
    """the git folder that all work trees share; mostly the same"""


def make_private_git(tree: Path, folder: Path) -> None:
    """Make the private git folder of a work tree, unless an earlier process has. SandboxError says what is in the way.

    This decides for the whole run where the repository is, and which repositories are inside the tree.
    """
    if (folder / _MOUNTS).exists():
        return
    tree = _real(tree)
    shutil.rmtree(folder, ignore_errors=True)
    files.make_folder(folder)
    try:
        found = _locate(tree)
        top = found.top if found else tree
        _refuse_link(top / _DOT_GIT)
        mounts = [*_dot_git(tree, found), *(_nested(top, tree, folder, found) if shutil.which("git") else ())]
        mounts += [*_clone(found, folder), *_used_by_git(found, tree)] if found else []
    except (GitError, OSError) as error:
        why = f"agents cannot have a git folder of their own: {error}"
        raise SandboxError(why, "see what git status says") from error
    files.write(folder / _MOUNTS, json.dumps([*map(_to_row, mounts)], indent=1), durable=True)


def git_mounts(tree: Path, folder: Path | None) -> list[Mount]:
    """What a sandbox shows of git: the private git folder, or without one the user's, to be read only.

    `.git` of the tree is a mount in any case, also where it does not exist: nobody can move, replace or make it.
    """
    tree = _real(tree)
    if folder is not None:
        rows = json.loads(files.read(folder / _MOUNTS, _LARGEST))
        mounts = [_from_row(row) for row in rows]
        return [mount for mount in mounts if mount.source is None or os.path.lexists(mount.source)]
    found = _locate(tree)
    shown = [Mount(path, Access.READ, path) for path in (found.common, found.own)] if found else []
    return [*([Mount(found.top, Access.READ)] if found else []), *shown, *_dot_git(tree, found)]


def remove_masks(tree: Path, folder: Path) -> None:
    """Remove the empty folders that bubblewrap has made where there is no `.git`, when no agent is left."""
    if (folder / _MOUNTS).exists():
        for mount in git_mounts(tree, folder):
            if mount.access is Access.HIDDEN:
                with suppress(OSError):
                    mount.path.rmdir()


def nested_repositories(top: Path, folder: Path) -> list[str]:
    """The paths of all repositories in a work tree but those that `.gitignore` names or that are inside of another.

    An empty repository in the private folder lists them, so that no setting of theirs counts, nor what is tracked.
    """
    lister = folder / "lister"
    for name in ("objects", "refs"):
        files.make_folder(lister / name)
    files.write(lister / "HEAD", "ref: refs/heads/none\n")
    env = {"GIT_DIR": str(lister), "GIT_WORK_TREE": str(top)}
    listed = git.run(top, "ls-files", "-z", "--others", "--exclude-standard", env=env, seconds=_LIST_SECONDS).parts
    return [path.removesuffix("/") for path in listed if path.endswith("/")]


def repositories_made_since(tree: Path, folder: Path) -> list[str]:
    """The repositories in a work tree that were not there when its private git folder was made; none without one."""
    if not (folder / _MOUNTS).exists():
        return []
    known = {mount.path for mount in git_mounts(tree, folder)}
    return [path for path in nested_repositories(_real(tree), folder) if _real(tree) / path / _DOT_GIT not in known]


def _locate(tree: Path) -> _Repository | None:
    """The repository that a folder is in; None where there is none, or none that git trusts."""
    what = ("--show-toplevel", "--git-dir", "--git-common-dir")
    try:
        said = git.run(tree, "rev-parse", "--path-format=absolute", *what)
    except GitError:
        return None
    top, own, common = (_real(Path(line)) for line in said.text.split("\n")[:3])
    return _Repository(top, own, common)


def _dot_git(tree: Path, found: _Repository | None) -> Iterator[Mount]:
    """Mounts for `.git` of the tree and of the top of its repository, where no git folder is mounted there."""
    for path in {(found.top if found else tree) / _DOT_GIT, tree / _DOT_GIT}:
        if not os.path.lexists(path):
            yield Mount(path, Access.HIDDEN)
        elif path.is_symlink():
            continue  # nothing can be mounted there
        elif found is None or path not in (found.common, found.own):
            yield Mount(path, Access.READ, path, is_file=path.is_file())


def _refuse_link(dot_git: Path) -> None:
    if dot_git.is_symlink():
        how = f"replace it by a file with the line gitdir: {_real(dot_git)}"
        raise SandboxError(f"{dot_git} is a symbolic link, which agents could replace", how)


# -- the clone


def _clone(found: _Repository, folder: Path) -> Iterator[Mount]:
    clone = folder / "clone"
    yield Mount(found.top, Access.READ)  # where it is in the folder for temporary files
    yield Mount(found.common, Access.WRITE, clone)
    _copy(found.common, clone)
    yield from _objects(found.common, clone, found.common)
    yield from _fixed(found.common, clone)
    if found.own != found.common:
        is_inside = found.own.is_relative_to(found.common)
        target = clone / found.own.relative_to(found.common) if is_inside else folder / "own"
        _copy_state(found.own, target)
        if not is_inside:
            yield Mount(found.own, Access.WRITE, target)
        yield from (
            Mount(found.own / name, Access.READ, target / name, is_file=True)
            for name in ("commondir", "gitdir")
            if (target / name).exists()
        )
    for module in _modules(found.common / "modules"):
        target = clone / module.relative_to(found.common)
        _copy(module, target)
        yield from (*_objects(module, target, module), *_fixed(module, target))


def _modules(folder: Path) -> Iterator[Path]:
    """The git folders of submodules, also of those inside of submodules."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()):
            is_git = (path / "HEAD").is_file() and (path / "objects").is_dir()
            if is_git:
                yield path
            yield from _modules(path / "modules" if is_git else path)


def _copy(common: Path, target: Path) -> None:
    """Make a git folder with the refs, the state and the harmless settings of another."""
    for name in ("objects/info", "objects/pack", "refs", "hooks", "info"):
        files.make_folder(target / name)
    _copy_state(common, target)
    if not (target / "commondir").exists():  # nobody can make one then, by which git would read other settings
        files.write(target / "commondir", ".\n")
    env = {"GIT_DIR": str(common)}
    form = "--format=%(objectname) %(refname)%00%(symref)"
    packed = ["# pack-refs with: sorted "]
    for row in filter(None, git.run(common, "for-each-ref", form, env=env).text.split("\n")):
        line, _, link = row.partition("\0")
        name = line.partition(" ")[2]
        if name.startswith(_NOT_COPIED):
            continue
        if link:
            files.write(target / name, f"ref: {link}\n")
        else:
            packed.append(line)
    files.write(target / "packed-refs", os.fsencode("\n".join([*packed, ""])))
    files.write(target / "config", os.fsencode(_config(common)))


def _copy_state(source: Path, target: Path) -> None:
    """Copy the small files that say where a work tree is at, and its index with its times."""
    names = [*_STATE, "index", *(path.name for path in source.glob("sharedindex.*"))]
    for name in names:
        with suppress(FileNotFoundError, NotADirectoryError), files.reading(_real(source / name)) as file:
            files.copy(file, target / name)
            written = os.fstat(file.fileno()).st_mtime_ns  # git takes files as young as its index for changed ones
            os.utime(target / name, ns=(written, written))


def _config(common: Path) -> str:
    """The repository's own settings, as far as they are harmless, as a config file."""
    said = git.run(common, "config", "--list", "--show-scope", "-z", env={"GIT_DIR": str(common)}).parts
    lines = []
    for scope, entry in zip(said[::2], said[1::2], strict=True):
        key, equals, value = entry.partition("\n")
        if scope not in ("local", "worktree") or not _KEYS.fullmatch(key):
            continue
        section, _, rest = key.partition(".")
        middle, _, name = rest.rpartition(".")
        head = f'{section} "{_escaped(middle)}"' if middle else section
        value = _escaped(_PASSWORD.sub(r"\1", value))
        lines += [f"[{head}]", f'\t{name} = "{value}"' if equals else f"\t{name}"]
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def _objects(common: Path, clone: Path, inside: Path) -> Iterator[Mount]:
    """Mount the user's objects into the clone, and with them what they are completed by."""
    lines = []
    for number, store in enumerate(_object_stores(_real(common / "objects"))):
        way = f"{_USERS}/{number}"
        files.make_folder(clone / way / "objects")
        yield Mount(inside / way / "objects", Access.READ, store)
        if (store.parent / "lfs").is_dir():  # where git-lfs looks for its own objects
            files.make_folder(clone / way / "lfs")
            yield Mount(inside / way / "lfs", Access.READ, store.parent / "lfs")
        if number:
            yield Mount(store, Access.READ, store)
        lines.append(f"../{way}/objects\n")
    files.write(clone / "objects/info/alternates", "".join(lines))


def _object_stores(store: Path) -> list[Path]:
    found: list[Path] = []
    waiting = [store]
    while waiting:
        store = waiting.pop(0)
        if store in found or not store.is_dir():
            continue
        found.append(store)
        with suppress(FileNotFoundError):
            lines = os.fsdecode(files.read(store / "info/alternates", _LARGEST)).splitlines()
            waiting += [_real(store / line.strip('"')) for line in lines if line and not line.startswith("#")]
    return found


def _fixed(path: Path, clone: Path) -> Iterator[Mount]:
    """What one agent could use to run a command in the sandbox of another."""
    yield Mount(path / "hooks", Access.READ, clone / "hooks")
    for name in ("config", "commondir"):
        yield Mount(path / name, Access.READ, clone / name, is_file=True)


# -- what is in the tree


def _pinned(path: Path, tree: Path) -> Iterator[Mount]:
    """Mounts of the folders between the tree and a path, so that nobody can move one away with what is in it."""
    yield from (Mount(parent, Access.WRITE, parent) for parent in path.parents if tree in parent.parents)


def _used_by_git(found: _Repository, tree: Path) -> Iterator[Mount]:
    """The files of the tree that git reads as settings, or runs as its settings say: agents can only read them."""
    said = git.run(found.top, "config", "--list", "--show-origin", "-z").parts
    for origin, entry in zip(said[::2], said[1::2], strict=True):
        key, _, value = entry.partition("\n")
        kind, _, source = origin.partition(":")
        named = [found.top / source] if kind == "file" else []
        if _INCLUDES.fullmatch(key):
            named.append((found.top / source).parent / Path(value).expanduser())
            if tree in _real(named[-1]).parents and not named[-1].exists():
                raise SandboxError(f"{key} names {named[-1]}, which agents could make", f"git config --unset {key}")
        elif _RUNS.fullmatch(key):
            named += [found.top / word for word in filter(None, _WORDS.split(value))]
        for path in map(_real, named):
            is_git = path.is_relative_to(found.common) or path.is_relative_to(found.own)
            if tree in path.parents and not is_git and path.is_file():
                yield from (*_pinned(path, tree), Mount(path, Access.READ, path, is_file=True))


def _nested(top: Path, tree: Path, private: Path, found: _Repository | None) -> Iterator[Mount]:
    """Keep `.git` of every repository in the tree where it is, and so the folders above it.

    The git folders of submodules are in the clone; all others can only be read.
    """
    for folder in (top / path for path in nested_repositories(top, private)):
        if tree not in folder.parents:
            continue
        dot_git = folder / _DOT_GIT
        yield from _pinned(dot_git, tree)
        _refuse_link(dot_git)
        yield Mount(dot_git, Access.READ, dot_git, is_file=dot_git.is_file())
        said = git.run(folder, "rev-parse", "--absolute-git-dir", check=False)
        own = _real(Path(said.text)) if not said.code else dot_git
        if own != dot_git and not (found and own.is_relative_to(found.common)):
            yield Mount(own, Access.READ, own)
        yield from _nested(folder, folder, private, found)


# -- kept mounts


def _to_row(mount: Mount) -> dict[str, str | bool]:
    source = str(mount.source) if mount.source else ""
    return {"path": str(mount.path), "access": mount.access.name, "source": source, "is_file": mount.is_file}


def _from_row(row: dict[str, str | bool]) -> Mount:
    source = Path(str(row["source"])) if row["source"] else None
    return Mount(Path(str(row["path"])), Access[str(row["access"])], source, bool(row["is_file"]))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
