"""A snapshot of a project: files with their bytes, mode bits and links, the index, HEAD, refs, config and hooks."""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.errors import NotGuarded
from quintet.guard.repository import Place
from quintet.guard.store import Content, Entry, Store

DOT_GIT: Final = ".git"
_FIELDS: Final = (
    "protect",
    "skip",
    "time",
    "git",
    "head",
    "refs",
    "nested",
    "sources",
    "objects_kept",
    "table",
    "bare",
)
Signature = tuple[int, int, int]


@dataclass
class Snapshot:
    """One moment of a project."""

    place: Place
    protect: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    time: int = 0
    """when the scan began, in nanoseconds"""
    files: dict[str, Entry] = field(default_factory=dict)
    """by path relative to the guarded folder; folders end with a slash"""
    elsewhere: dict[str, Signature] = field(default_factory=dict)
    """mode, size and time of files in the repository outside the guarded folder, by path relative to its top"""
    git: dict[str, Entry] = field(default_factory=dict)
    head: str = ""
    refs: dict[str, str] | None = None
    """None where git cannot read the repository"""
    ref_files: dict[str, Entry] = field(default_factory=dict, compare=False)
    """by path relative to the shared git folder; not stored"""
    staged: bytes = b""
    nested: dict[str, str] = field(default_factory=dict)
    """the state of submodules and nested repositories, by path relative to the top"""
    rules: bytes = b""
    """the ignore rules, as one list"""
    sources: tuple[str, ...] = ()
    """the `.gitignore` files that they are from"""
    objects_kept: bool = False
    bare: tuple[str, ...] = ()
    """folders in which no file is that counts, with a slash at the end: an undo does not remove them"""
    table: str = ""
    """the file of the store that has `files` and `elsewhere`; empty where they are not stored"""
    complete: bool = field(default=False, compare=False)
    """nothing that a new snapshot would have is missing: since the earlier one only files have changed"""


def save_snapshot(new: Snapshot, store: Store, name: str) -> None:
    """Keep a snapshot so that it outlives the process and a power failure."""
    if not new.table:
        rows = {"files": new.files, "elsewhere": new.elsewhere}
        text = json.dumps(rows, separators=(",", ":")).encode()
        new.table = f"table-{hashlib.blake2b(text, digest_size=10).hexdigest()}.json"
        with files.replacing(store.folder / new.table) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # its name becomes durable with that of the snapshot
    fields = {key: getattr(new, key) for key in _FIELDS}
    fields |= {"place": asdict(new.place), "staged": store.add([new.staged]), "rules": store.add([new.rules])}
    store.sync()
    files.write(store.folder / f"{name}.json", json.dumps(fields), durable=True)
    _remove_unused_tables(store)


def _remove_unused_tables(store: Store) -> None:
    used = {_table_of(path) for path in store.folder.glob("*.json") if not path.name.startswith("table-")}
    for path in store.folder.glob("table-*.json"):
        if path.name not in used:
            path.unlink()


def _table_of(path: Path) -> str:
    """The table that a snapshot uses; empty where somebody has damaged it."""
    try:
        return str(_read(path)["table"])
    except (ValueError, KeyError, TypeError):
        return ""


@dataclass
class Walked:
    """What git does not list, by path relative to the guarded folder; folders end with a slash."""

    bare: list[str] = field(default_factory=list)
    """folders beside those that files were found in; of one that is not empty only itself"""
    special: list[str] = field(default_factory=list)
    """pipes, sockets and devices"""
    repositories: list[str] = field(default_factory=list)
    """folders that have a `.git`, whatever it is"""


def walk_folders(root: str, files: dict[str, Entry], skip: Sequence[str] = ()) -> Walked:
    """Look into the folders of files, and into those beside them; into one of these that is not empty no further."""
    found = Walked()
    waiting = ["", *(path for path in files if path.endswith("/"))]
    while waiting:
        folder, folders, others = waiting.pop(), list[str](), list[os.DirEntry[str]]()
        with suppress(OSError), os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                if entry.name == DOT_GIT:
                    found.repositories += [folder] if _is_used(entry) else []
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{folder}{entry.name}/")
                else:
                    others.append(entry)
        found.special += [folder + entry.name for entry in others if not (entry.is_symlink() or entry.is_file())]
        if folder and folder not in files and others:
            continue
        new = [path for path in folders if path not in files and path[:-1] not in skip]
        waiting += new
        found.bare += new
    return found


def _is_used(dot_git: "os.DirEntry[str]") -> bool:
    """Whether a `.git` is more than an empty folder, which is nothing to git."""
    if not dot_git.is_dir(follow_symlinks=False):
        return True
    with suppress(OSError):
        return bool(os.listdir(dot_git.path))  # noqa: PTH208 - one of many
    return True


def load(store: Store, name: str) -> Snapshot | None:
    """A snapshot that was kept, by this process or an earlier one; None where there is none of this name."""
    try:
        fields = _read(store.folder / f"{name}.json")
        rows = _read(store.folder / fields["table"])
        fields |= {key: store.read(Content(*fields[key])) for key in ("staged", "rules")}
        fields["place"] = Place(**fields["place"])
        fields["git"] = {key: Entry(*row) for key, row in fields["git"].items()}
        fields |= {key: tuple(fields.get(key, ())) for key in ("protect", "skip", "sources", "bare")}
        new = Snapshot(**fields)
        new.files = {path: Entry(*row) for path, row in rows["files"].items()}
        new.elsewhere = {path: (mode, size, mtime) for path, (mode, size, mtime) in rows["elsewhere"].items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotGuarded(f"the snapshot {name} in {store.folder} cannot be read: {error}") from error
    store.know(new.files.values())
    return new


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found
