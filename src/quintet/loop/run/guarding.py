"""What the roles of a run may change: a snapshot before each prompt, a comparison after the reply, and the undo."""

import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from quintet import files, git
from quintet.config import Settings
from quintet.errors import GitError, NotGuarded, RunError, TooLarge
from quintet.guard import (
    SECONDS,
    START_SECONDS,
    Change,
    Snapshot,
    Split,
    Store,
    Undone,
    compare,
    finish,
    keep,
    load,
    look,
    save,
    take,
    undo,
)
from quintet.layout import TMP, guard_folder, start_snapshot
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import Ask, Step, Verify
from quintet.loop.journal import GuardViolation
from quintet.loop.record.store import RunStore
from quintet.loop.run.change_words import some_changes
from quintet.loop.run.checkout_watch import CheckoutWatch
from quintet.loop.run.forbidden_changes import (
    MOST_CHANGES,
    protected_files,
    split_changes,
    unknown_violation,
    violation_of,
)
from quintet.program import program
from quintet.prose import plural, printable
from quintet.roles import TESTER, Role

_STOPPED: Final = "stopped"
"""the snapshot of the project when the run was stopped"""
_TURN: Final = "turn-"
"""the beginning of the names of the snapshots before a prompt"""
_LEFT: Final = f"{_TURN}left"
"""the snapshot of a turn that is over: the project as that has left it, and as it has to be until the next one"""
_LARGEST: Final = 10_000_000


class TreeGuard:
    """Watches what agents change in the project. Where it cannot, the run goes on and says so once."""

    def __init__(self, settings: Settings, store: RunStore) -> None:
        self._settings, self._store = settings, store
        self._folder = guard_folder(store.state.run_id)
        self._start_snapshot = start_snapshot(store.state.run_id)
        self._skip = [TMP.name]
        if settings.state_file.is_relative_to(settings.workspace.tree):
            self._skip.append(settings.state_file.relative_to(settings.workspace.tree).as_posix())
        self._checkout = CheckoutWatch(settings.workspace)
        self._snapshots: Store | None = None
        self._name = ""
        """of the snapshot that the current turn is compared with"""
        self._before: Snapshot | None = None
        self._last: Snapshot | None = None
        """what was seen last, so that files which are still the same need not be read"""
        self._left: Snapshot | None = None
        """the project as the last turn has left it; None where a snapshot of that has to be taken anew"""
        self._left_unchanged = False
        """that turn has changed nothing: its own snapshot is one of what it has left"""
        self._left_at: State | None = None
        """the state of the run when that turn was done"""
        self._was_guarded = False
        """the run has taken snapshots before: where that fails now, somebody has seen to it"""
        self._lost = False
        """the snapshot of the current turn is gone: what its role did before is not known"""
        self._resumed = False
        """an earlier process has taken the current turn's snapshot"""

    # -- the beginning and the end of a process

    def start(self, dirty: Sequence[str] | None, earlier: Iterable[str]) -> None:
        """At the beginning of a new run: complete what killed runs were undoing, and take the first snapshot.

        `dirty` are the paths that are not committed; None where that is not known.
        """
        if self._settings.guard == "off":
            return
        with self._guarding():
            for folder in map(guard_folder, earlier):
                if folder.is_dir():
                    self._finish(Store(folder), give_up=True)
            self._snapshots = Store(self._folder)
            self._last = self._take(self._snapshots, self._start_snapshot.stem, START_SECONDS)
        self._was_guarded = self._is_on
        if not self._is_on:
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        if dirty == ():
            self._start_snapshot.unlink(missing_ok=True)
        else:
            restore = f"{program()} restore {self._store.state.run_id}"
            self._store.note(f"what is not committed here is kept as it is now; {restore} brings it back")
        if self._settings.guard == "restore" and not self._settings.workspace.is_worktree:
            self._store.note(
                "what a role may not change is undone after its turn; so are your own edits here while the run "
                "lasts: --worktree gives the run a place of its own"
            )

    def resume(self, step: Step) -> None:
        """When a saved run goes on: complete an undo that was interrupted, and say what has changed since."""
        if self._settings.guard == "off":
            return
        self._was_guarded = any(self._folder.glob("*.json"))
        with self._guarding():
            self._snapshots = Store(self._folder)
            self._finish(self._snapshots)
            with self._guarding("what has changed since the run was stopped is not known"):
                self._tell_changes_since(self._snapshots, step)
            if isinstance(step, Verify) and self._settings.guard == "restore":
                try:
                    self._put_right(self._snapshots)
                except (NotGuarded, GitError, OSError) as error:
                    raise RunError(f"the checks cannot run on: what has changed since is not known: {error}") from error

    def stop(self) -> None:
        """When a run stops before its end: note how the project is left."""
        if self._snapshots is not None:
            with self._guarding():
                self._take(self._snapshots, _STOPPED)

    def close(self) -> None:
        """At the end of a run: only what was not committed at its beginning is still needed."""
        if self._snapshots is None:
            return
        self._snapshots.close()
        self._snapshots = None
        self._left_file.unlink(missing_ok=True)
        if not self._start_snapshot.exists():
            shutil.rmtree(self._folder, ignore_errors=True)

    def _finish(self, snapshots: Store, *, give_up: bool = False) -> None:
        try:
            finished = finish(snapshots, give_up=give_up)
        except NotGuarded as error:
            self._store.warn(str(error))
            return
        if finished:
            if not finished.failed:
                number = plural(len(finished.changes), "change")
                self._store.note(f"an undo that was interrupted is complete ({number})")
            self._tell_failed(finished)

    def _tell_failed(self, undone: Undone) -> None:
        for name, reason in undone.failed.items():
            self._store.warn(f"{printable(name)} could not be put back: {reason}")

    def _tell_changes_since(self, snapshots: Store, step: Step) -> None:
        """Tell and keep what has changed since the run was stopped; since its last turn began, where it was killed.

        What the interrupted role may not change is undone at the end of that turn.
        """
        before = self._load_snapshot(snapshots, _STOPPED) or self._load_snapshot(snapshots, f"{_TURN}{step.key}")
        if before is None and isinstance(step, Ask | Verify):  # later it is Quintet that archives and commits
            before = self._load_snapshot(snapshots, _LEFT)
        if before is None:
            return
        changes = compare(before, look(before, snapshots))
        if changes:
            patch = self._free_name("resumed")
            self._keep(keep(changes, before, snapshots, patch)[0])
            since = "the run was stopped" if (self._folder / f"{_STOPPED}.json").exists() else "its last turn began"
            self._store.note(f"changed since {since}: {some_changes(changes)}; kept as {patch.name}")
        (self._folder / f"{_STOPPED}.json").unlink(missing_ok=True)

    def _put_right(self, snapshots: Store) -> None:
        """Before checks go on that an earlier process has begun: undo what has changed since the last turn."""
        before = self._load_left(snapshots)
        if before is None:
            return
        self._resumed = True
        split = self._split(TESTER, compare(before, look(before, snapshots)), before)
        if split.forbidden:
            patch = self._free_name("checks-undone")
            undone = self._carry_out(split, before, snapshots, patch)
            self._store.warn(f"undone before the checks run on: {some_changes(split.forbidden)}; kept as {patch.name}")
            for name, reason in undone.failed.items():
                raise RunError(f"the checks cannot run on: {printable(name)} could not be put back: {reason}")

    def _load_left(self, snapshots: Store) -> Snapshot | None:
        """The snapshot of the project as the last turn has left it; a kill may have come before it got its name."""
        names = [path.stem for path in self._folder.glob(f"{_TURN}*.json") if path.stem != _LEFT]
        return self._load_snapshot(snapshots, names[0] if names else _LEFT)

    @property
    def _left_file(self) -> Path:
        return self._folder / f"{_LEFT}.json"

    @property
    def _is_on(self) -> bool:
        return self._snapshots is not None

    # -- a turn

    def before(self, step: Ask) -> None:
        """Take the snapshot of a step, or find the one that an earlier attempt or process has taken."""
        name = _TURN + step.key
        if self._snapshots is None or self._name == name:
            return
        self._checkout.before()
        with self._guarding():
            is_sent = self._store.state.dispatched == step.key
            self._name, self._before = name, self._load_snapshot(self._snapshots, name)
            if self._before is None and is_sent:  # its new name may not have outlived a power failure
                self._before = self._load_left(self._snapshots)
            self._resumed = self._before is not None
            self._complete_undo(self._snapshots)
            # a prompt is sent only when there is a snapshot: somebody has removed it since
            self._lost = self._before is None and is_sent
            if self._before is None:
                self._before = self._keep_left(self._snapshots, name) or self._take_anew(self._snapshots, name)
            self._last = self._before
            for old in self._folder.glob(f"{_TURN}*"):
                if not old.name.startswith(f"{name}."):
                    old.unlink()

    def _complete_undo(self, snapshots: Store) -> None:
        """Try again what an undo has failed to put back: a turn that begins with that has no verdict that counts."""
        undone = finish(snapshots, force=True)
        if undone and undone.failed:
            name, reason = next(iter(undone.failed.items()))
            raise NotGuarded(f"{printable(name)} could not be put back: {reason}")

    def _take_anew(self, snapshots: Store, name: str) -> Snapshot:
        """Take a snapshot, in a new store where somebody has damaged this one: agents do not switch the guard off."""
        try:
            return self._take(snapshots, name)
        except (NotGuarded, OSError) as error:
            if isinstance(error, TooLarge) or not self._was_guarded:
                raise
            aside = next(path for number in itertools.count(1) if not (path := _aside(self._folder, number)).exists())
            self._store.warn(f"{error}; the snapshots are put aside as {aside.name}, and a new one is taken")
            snapshots.close()
            with suppress(FileNotFoundError):
                self._folder.rename(aside)
            self._last = self._left = None
            self._snapshots = Store(self._folder)
            return self._take(self._snapshots, name)

    def _keep_left(self, snapshots: Store, name: str) -> Snapshot | None:
        """Let the turn begin with what the last one has left: what has changed since counts as done in it.

        None where that is not known, or where Quintet itself may have changed something since: then a step was carried
        out that is no turn, and the run's state is another one.
        """
        if self._left is None or self._left_at is not self._store.state:
            return None
        if self._left_unchanged and self._left_file.exists():
            self._left_file.replace(self._folder / f"{name}.json")
        else:
            save(self._left, snapshots, name)
        return self._left

    def _load_snapshot(self, snapshots: Store, name: str) -> Snapshot | None:
        """A snapshot of an earlier process; one that somebody has damaged is as good as none."""
        try:
            return load(snapshots, name)
        except NotGuarded as error:
            self._store.warn(str(error))
            return None

    def after(self, step: Ask) -> GuardViolation | None:
        """Compare the project with the snapshot of a step, and undo what its role may not change."""
        snapshots, before, is_known = self._snapshots, self._before, False
        self._left, self._left_unchanged = None, False
        earlier = found = self._noted()
        if snapshots is None or before is None:
            is_restored = self._was_guarded and self._settings.guard == "restore"
            return unknown_violation(step, earlier) if is_restored else None
        with self._guarding(f"what {step.role} has changed in this turn is not known"):
            self._last = look(before, snapshots)
            changes = compare(before, self._last)
            split = self._split(step.role, [*changes, *self._checkout.after()], before)
            if split.forbidden or split.told:
                found = self._undo(split, before, snapshots, violation_of(step, split, earlier))
            is_known = not self._lost
            is_undone = split.forbidden and self._settings.guard == "restore"
            self._left = self._last if self._last.complete and not is_undone else None
            self._left_unchanged = not changes
        return found if is_known or self._settings.guard != "restore" else unknown_violation(step, earlier)

    def done(self, step: Ask) -> None:
        """The outcome of the step is saved: its snapshot is still needed if it is one of what the step has left."""
        if self._snapshots is not None:
            snapshot = self._folder / f"{self._name}.json"
            if (self._left_unchanged or step.role.judges) and snapshot.exists():
                snapshot.replace(self._left_file)
            for path in (snapshot, self._note):
                path.unlink(missing_ok=True)
        self._name, self._before, self._lost, self._left_at = "", None, False, self._store.state

    def _take(self, snapshots: Store, name: str, seconds: float = SECONDS) -> Snapshot:
        return take(
            self._settings.workspace.tree,
            snapshots,
            name,
            protected_files(self._settings),
            skip=self._skip,
            cache=self._last,
            seconds=seconds,
        )

    def _split(self, role: Role, changes: Sequence[Change], before: Snapshot) -> Split:
        return split_changes(role, changes, before, self._settings, resumed=self._resumed)

    def _undo(self, split: Split, before: Snapshot, snapshots: Store, violation: GuardViolation) -> GuardViolation:
        """Undo the forbidden changes. The violation is written down first, so that a kill does not hide it."""
        if self._settings.guard != "restore" or not split.forbidden:
            return violation
        patch = self._free_name(f"{violation.role}-undone")
        violation = violation.model_copy(update={"undone": True, "file": patch.name})
        files.write(self._note, violation.model_dump_json(), durable=True)
        undone = self._carry_out(split, before, snapshots, patch)
        failed = tuple(f"{printable(name)}: {reason}" for name, reason in undone.failed.items())
        told = {"failed": (*failed, *undone.notes)[:MOST_CHANGES], "serious": violation.serious or bool(failed)}
        return violation.model_copy(update=told)

    def _carry_out(self, split: Split, before: Snapshot, snapshots: Store, patch: Path) -> Undone:
        with self._store.signals.deferred():
            undone = undo(split, before, snapshots, patch)
            self._keep(undone.kept)
        return undone

    def _free_name(self, what: str) -> Path:
        """A free name in the archive for a patch."""
        archive, number = self._store.responses.archive, self._store.state.sequence + 1
        names = (f"{number:03d}-{what}{f'-{more}' if more > 1 else ''}.patch" for more in itertools.count(1))
        return next(
            archive / name for name in names if files.look(archive / name, self._settings.workspace.tree) is None
        )

    def _keep(self, paths: Iterable[Path]) -> None:
        """Take files of the archive into the run's record."""
        for path in paths:
            self._store.record.keep_copy(path.name)

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
    def _guarding(self, turn: str = "") -> Iterator[None]:
        """Whatever keeps the guard from its work never ends the run. `turn`: it concerns this turn alone.

        Where the run was guarded before, it always does: no verdict of the turn counts, and the next one tries again.
        """
        try:
            yield
        except (NotGuarded, GitError, OSError) as error:
            self._before = None
            if turn:
                self._store.warn(f"{turn}, and nothing of it is undone: {error}")
                return
            if self._was_guarded:
                self._store.warn(f"what this turn changes is not known, and no verdict of it counts: {error}")
                return
            self._snapshots = None
            reason = (
                str(error)
                if git.is_repository(self._settings.workspace.tree)
                else "the project is in no git repository"
            )
            self._store.warn(f"the roles are not guarded, and nothing that they change is undone: {reason}")


def _aside(folder: Path, number: int) -> Path:
    return folder.with_name(f"{folder.name}-damaged-{number}")
