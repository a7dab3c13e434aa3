"""Take changes back exactly, in a way that survives being killed at any moment.

What is taken back is kept first. Then a plan of all that is to be done is written, and only then anything is touched.
Every step of the plan can be done twice. The plan is removed at the end; one that is found at the next start is
carried out again.
"""

import itertools
import json
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from quintet import files
from quintet.errors import NotGuarded
from quintet.guard import archive
from quintet.guard.changes import Area, Change
from quintet.guard.repository import Place
from quintet.guard.restore import Restoring, UndoPlan
from quintet.guard.rules import Split
from quintet.guard.snapshot import Snapshot
from quintet.guard.store import Deadline, Entry, Store

_FILE: Final = "undo.plan"
_ATTEMPTS: Final = 3
_SECONDS: Final = 600.0


@dataclass
class Undone:
    """How an undo ended."""

    changes: tuple[Change, ...]
    """what was to be taken back"""
    kept: list[Path] = field(default_factory=list)
    """the files that have it: a patch, and where needed a patch of git's own files and a bundle of commits"""
    failed: dict[str, str] = field(default_factory=dict)
    """names of what could not be taken back, with the reason"""
    notes: list[str] = field(default_factory=list)


def undo(split: Split, before: Snapshot, store: Store, patch: Path) -> Undone:
    """Take the forbidden changes back to what a snapshot has; first they are kept in a patch and in files beside it."""
    changes = [*split.forbidden, *_in_the_way(split.forbidden, before, store)]
    kept, notes = archive.keep(changes, before, store, patch)
    if any(change.area is Area.REPOSITORY for change in changes):
        objects = "" if before.objects_kept else " nor its objects, because the store is on another file system"
        notes.append(f"git could not use the repository any more; reflogs that are gone are not restored{objects}")
    above = _above(changes)
    plan = UndoPlan(
        before.place,
        changes,
        before.git.get("git/index"),
        not any(change.area is Area.INDEX for change in split.allowed),
        before.refs or {},
        {path: before.files[path].mode for path in above if path in before.files},
        [path for path in above if path not in before.files and path not in before.bare],
        [str(path) for path in kept],
        notes,
        _free_names([change.name for change in changes if change.area is Area.INNER], patch),
    )
    notes += [f"{name} is kept as {Path(target).name}" for name, target in plan.taken_out.items()]
    store.sync()
    files.write(store.folder / _FILE, json.dumps(asdict(plan)), durable=True)
    return _carry_out(plan, store, force=True)


def finish(store: Store, *, force: bool = False, give_up: bool = False) -> Undone | None:
    """Complete an undo that was interrupted or has failed in part; None where there is none.

    What has changed since then is neither what the undo found nor what it wants: unless `force`, it is left as it is,
    and named. An undo that fails is tried again by the next call, unless this one gives up.
    """
    try:
        found = json.loads((store.folder / _FILE).read_bytes())
        changes = [
            Change(Area(row["area"]), row["name"], _value(row["before"]), _value(row["after"]))
            for row in found["changes"]
        ]
        index = Entry(*found["index"]) if found["index"] else None
        plan = UndoPlan(**{**found, "place": Place(**found["place"]), "changes": changes, "index": index})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotGuarded(f"the plan of an undo in {store.folder} cannot be read: {error}") from error
    undone = _carry_out(plan, store, force=force)
    if give_up:
        (store.folder / _FILE).unlink(missing_ok=True)
    return undone


def _value(stored: Any) -> Entry | str | None:
    return Entry(*stored) if isinstance(stored, list) else stored


def _in_the_way(forbidden: Sequence[Change], before: Snapshot, store: Store) -> list[Change]:
    """What has to go before a file can come back, beside what is forbidden: a file where its folder was, or the other
    way round, with all that git ignores in it."""
    known = {change.name for change in forbidden if change.area is Area.FILE}
    tree, found, deadline = before.place.tree, set[str](), Deadline(_SECONDS)
    for change in forbidden:
        if change.area is not Area.FILE or change.before is None or change.name.endswith("/"):
            continue
        above = [str(folder) for folder in reversed(PurePosixPath(change.name).parents[:-1])]
        if blocking := next((path for path in above if _is_no_folder(f"{tree}/{path}")), ""):
            found.add(blocking)
            continue
        for folder, names, inside in os.walk(f"{tree}/{change.name}"):
            links = [name for name in names if _is_no_folder(f"{folder}/{name}")]
            found.update(os.path.relpath(f"{folder}/{name}", tree) for name in (*inside, *links))
    entries = {name: store.observe(f"{tree}/{name}", deadline) for name in sorted(found - known)}
    return [Change(Area.FILE, name, None, entry) for name, entry in entries.items() if entry]


def _is_no_folder(path: str) -> bool:
    return os.path.lexists(path) and not stat.S_ISDIR(os.lstat(path).st_mode)


def _free_names(names: Sequence[str], patch: Path) -> dict[str, str]:
    """A path beside the patch for each of some names that is not taken yet."""
    paths = (patch.with_suffix(f".{number}.git") for number in itertools.count(1))
    return dict(zip(names, (str(path) for path in paths if not os.path.lexists(path)), strict=False))


def _above(changes: Iterable[Change]) -> list[str]:
    """The folders above changed files, from the top down, each with a slash at its end."""
    names = [change.name for change in changes if change.area is Area.FILE and not change.name.endswith("/")]
    folders = {f"{folder}/" for name in names for folder in PurePosixPath(name).parents[:-1]}
    return sorted(folders | {f"{name}/" for name in names})


def _carry_out(plan: UndoPlan, store: Store, *, force: bool) -> Undone:
    work = Restoring(plan, store, force)
    for _ in range(_ATTEMPTS if force else 1):  # a process that is left over may write again
        work.failed.clear()
        work.run()
        if not work.written_again():
            break
    os.sync()
    if not work.failed:
        (store.folder / _FILE).unlink(missing_ok=True)
    return Undone(tuple(plan.changes), [Path(path) for path in plan.kept], work.failed, plan.notes)
