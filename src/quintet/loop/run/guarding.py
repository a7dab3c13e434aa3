"""What the roles of a run may change: a snapshot before each prompt, a comparison after the reply, and the undo."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from quintet import files, git
from quintet.config import Settings
from quintet.errors import GitError, NotGuarded
from quintet.guard import (
    Area,
    Change,
    Rules,
    Snapshot,
    Split,
    Store,
    compare,
    finish,
    load,
    look,
    matches,
    take,
    undo,
)
from quintet.layout import OWN_FILES, TMP, guard_folder
from quintet.loop.decide.steps import Ask
from quintet.loop.journal import GuardedChange, GuardViolation
from quintet.loop.record.store import RunStore
from quintet.roles import Role

START: Final = "start"
"""the snapshot of the project before the run"""
_TURN: Final = "turn-"
_MOST: Final = 50
"""changes that an event names"""
_LARGEST: Final = 10_000_000
_WORDS: Final = {"mode": "changed the mode of", "type": "changed the type of"}


class TreeGuard:
    """Watches what agents change in the project. Where it cannot, the run goes on and says so once."""

    def __init__(self, settings: Settings, run: RunStore) -> None:
        self._settings, self._run = settings, run
        self._folder = guard_folder(run.state.run_id)
        self._protect = (*OWN_FILES, *settings.protect)
        self._skip = [TMP.name]
        if settings.state_file.is_relative_to(settings.wd):
            self._skip.append(settings.state_file.relative_to(settings.wd).as_posix())
        self._store: Store | None = None
        self._name = ""
        """of the snapshot that the current turn is compared with"""
        self._before: Snapshot | None = None
        self._last: Snapshot | None = None
        """what was seen last, so that files which are still the same need not be read"""
        self._resumed = False
        """an earlier process has taken the current turn's snapshot"""

    # -- the beginning and the end of a process

    def start(self) -> None:
        """At the beginning of a new run: take the first snapshot, and tell the user what to mind."""
        if self._settings.guard == "off":
            return
        with self._guarding():
            self._store = Store(self._folder)
            self._last = self._take(self._store, START)
        if not self._is_on:
            shutil.rmtree(self._folder, ignore_errors=True)
        elif self._settings.guard == "restore":
            self._run.note(
                "what a role may not change is undone after its turn; so are your own edits here while the run "
                "lasts: work in another copy (git worktree add)"
            )

    def resume(self) -> None:
        """When a saved run goes on: first of all complete an undo that was interrupted."""
        if self._settings.guard == "off":
            return
        with self._guarding():
            self._store = Store(self._folder)
            finished = finish(self._store)
            if finished:
                self._run.note(f"an undo that was interrupted is complete: {len(finished.changes)} changes")
                for name, reason in finished.failed.items():
                    self._run.warn(f"{_printable(name)} could not be put back: {reason}")

    def close(self) -> None:
        """At the end of a run: what it was compared with is not needed any more."""
        if self._store:
            self._store.close()
            self._store = None
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _is_on(self) -> bool:
        return self._store is not None

    # -- a turn

    def before(self, step: Ask) -> None:
        """Take the snapshot of a step, or find the one that an earlier attempt or process has taken."""
        name = _TURN + step.key
        if self._store is None or self._name == name:
            return
        with self._guarding():
            self._name, self._before = name, load(self._store, name)
            self._resumed = self._before is not None
            if self._before is None:
                self._before = self._take(self._store, name)
            self._last = self._before
            for old in self._folder.glob(f"{_TURN}*"):
                if not old.name.startswith(f"{name}."):
                    old.unlink()

    def after(self, step: Ask) -> GuardViolation | None:
        """Compare the project with the snapshot of a step, and undo what its role may not change."""
        store, before = self._store, self._before
        if store is None or before is None:
            return None
        earlier = self._noted()
        with self._guarding():
            self._last = look(before, store)
            split = self._split(step.role, compare(before, self._last))
            if split.forbidden or split.told:
                return self._undo(split, before, store, self._violation(step, split, earlier))
        return earlier

    def done(self) -> None:
        """The outcome of the step is saved: its snapshot is not needed any more."""
        if self._store is not None:
            for path in (self._folder / f"{self._name}.json", self._note):
                path.unlink(missing_ok=True)
        self._name, self._before = "", None

    def _take(self, store: Store, name: str) -> Snapshot:
        return take(self._settings.wd, store, name, self._protect, skip=self._skip, cache=self._last)

    def _split(self, role: Role, changes: Sequence[Change]) -> Split:
        """What of the changes is to be undone, and what only told.

        Where the turn began in an earlier process, the user may have edited the run's own files in between.
        """
        rules = Rules(role.may_change, role.may_commit, self._protect, self._settings.guard_allow)
        split = rules.split(changes)
        own = [
            change
            for change in split.forbidden
            if self._resumed and change.area is Area.FILE and matches(change.name, OWN_FILES)
        ]
        told = [change for change in split.told if change.area is not Area.NESTED or not role.may_commit]
        forbidden = tuple(change for change in split.forbidden if change not in own)
        return Split(split.allowed, forbidden, (*own, *told))

    def _violation(self, step: Ask, split: Split, earlier: GuardViolation | None) -> GuardViolation:
        paths = list(dict.fromkeys([*(earlier.paths if earlier else ()), *map(_told, split.forbidden)]))
        return GuardViolation(
            step=step.key,
            role=step.role.name,
            paths=tuple(paths[:_MOST]),
            left_out=len(paths[_MOST:]) + (earlier.left_out if earlier else 0),
            serious=split.serious or (earlier is not None and earlier.serious),
            outside=tuple(map(_told, split.told[:_MOST])),
        )

    def _undo(self, split: Split, before: Snapshot, store: Store, violation: GuardViolation) -> GuardViolation:
        """Undo the forbidden changes. The violation is written down first, so that a kill does not hide it."""
        if self._settings.guard != "restore" or not split.forbidden:
            return violation
        patch = self._patch(violation.role)
        violation = violation.model_copy(update={"undone": True, "file": patch.name})
        files.write(self._note, violation.model_dump_json(), durable=True)
        with self._run.signals.deferred():
            undone = undo(split, before, store, patch)
        failed = tuple(f"{_printable(name)}: {reason}" for name, reason in undone.failed.items())
        return violation.model_copy(update={"failed": (*failed, *undone.notes)[:_MOST]})

    def _patch(self, role: str) -> Path:
        """A free name in the archive for what is undone."""
        archive, number = self._run.responses.archive, self._run.state.sequence + 1
        names = (f"{number:03d}-{role}-undone{f'-{more}' if more > 1 else ''}.patch" for more in range(1, 1000))
        return next(archive / name for name in names if files.look(archive / name, self._settings.wd) is None)

    @property
    def _note(self) -> Path:
        return self._folder / f"{self._name}.violation"

    def _noted(self) -> GuardViolation | None:
        """What was about to be undone of this turn when an earlier process was killed."""
        try:
            return GuardViolation.model_validate_json(files.read(self._note, _LARGEST))
        except (OSError, ValidationError):
            return None

    @contextmanager
    def _guarding(self) -> Iterator[None]:
        """Whatever keeps the guard from its work ends it for this run, and never the run."""
        try:
            yield
        except (NotGuarded, GitError, OSError) as error:
            self._store = self._before = None
            reason = str(error) if git.is_repository(self._settings.wd) else "the project is in no git repository"
            self._run.warn(f"the roles are not guarded, and nothing that they change is undone: {reason}")


def _told(change: Change) -> GuardedChange:
    name = _printable(change.name)
    match change.area:
        case Area.INDEX:
            name = f"{name} in the index"
        case Area.GIT:
            name = f".git/{name.partition('/')[2]}"
    return GuardedChange(path=name, change=_WORDS.get(change.kind, change.kind))


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)[1:-1]
