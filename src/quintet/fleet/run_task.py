"""The process that carries out the run of one task, started by a slot: `python -m quintet.fleet.run_task`.

It knows nothing of the queue. It stops by itself where its slot is gone or silent, so that a task never runs twice.
"""

import os
import re
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quintet import files, git
from quintet.config import Settings
from quintet.config.load import Loaded
from quintet.errors import GitError, QuintetError, RunError
from quintet.execute import RunSpec, execute
from quintet.fleet.checkpoint import make_checkpoint
from quintet.fleet.messages import CheckpointMade, Moved, Order, RunEnded, RunHalted, last_confirmed
from quintet.fleet.task_settings import confine, load_task_settings
from quintet.fleet.tasks import TaskOutcome
from quintet.layout import STATE, STATE_FILE, Workspace
from quintet.loop.decide.state import GATES, Gate, Status, without_terminals
from quintet.loop.decide.steps import WaitForPerson
from quintet.loop.journal import (
    ApprovalAsked,
    Event,
    LimitReached,
    PromptSent,
    ReplyMissed,
    ReplyTaken,
    RunResumed,
    RunStarted,
)
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.lock import find_process
from quintet.loop.record.people import Decision, People
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import load_project_state, save
from quintet.loop.record.signals import Interrupted, Signals
from quintet.loop.record.state_file import decode_state
from quintet.loop.run.choose_workspace import in_workspace
from quintet.loop.run.confined import ConfinedCommands
from quintet.loop.run.resume import not_resumable_reason
from quintet.loop.run.work_tree import uncommitted
from quintet.loop.run.worktree_setup import setup_failure
from quintet.program import program
from quintet.roles import BY_NAME
from quintet.setup.stopping import Target, stop
from quintet.workspace.creating import create
from quintet.workspace.worktrees import Stage, worktrees_of

Tell = Callable[[Moved | CheckpointMade | RunEnded | RunHalted], None]
_SHORT_LIMIT: Final = 60.0
"""seconds of a usage limit that are waited for in place"""
_LAST_WORDS: Final = 30.0
"""how long a run that was told to stop may take at most"""


def main() -> None:
    """Read the order from standard input, carry it out, and say how it went on standard output."""
    order = Order.model_validate_json(sys.stdin.buffer.readline())
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(message: Moved | CheckpointMade | RunEnded | RunHalted) -> None:
        out.write(f"{message.model_dump_json()}\n")

    threading.Thread(target=_watch_slot, args=(order.patience,), daemon=True).start()
    try:
        tell(carry_out(order, tell))
    except Interrupted:
        tell(RunHalted(reason="it was stopped before it had begun", was_told=True))
    except QuintetError as error:
        tell(RunHalted(reason=str(error)))
    except OSError as error:
        tell(RunHalted(reason=f"{error.filename or 'the machine'}: {error.strerror}"))


def carry_out(order: Order, tell: Tell) -> RunEnded | RunHalted:
    """Carry the run of a task to its end, or go on with it."""
    with Signals() as signals:
        loaded = _in_its_tree(order, signals)
    settings = loaded.settings
    tree = settings.workspace.tree
    if process := find_process(tree):
        stop(Target(tree, process), lambda _: None)
    git.remove_locks(tree)
    listener = _Listener(settings, order, tell)
    if (ended := _ended(settings, order) or _waits_for_person(settings, order)) is not None:
        return ended
    result = execute(RunSpec(settings, loaded.warnings, [listener], loaded=loaded))
    if result.status is not Status.RUNNING:
        return _ended(settings, order) or RunHalted(reason="the state of the run is gone")
    if listener.limit:
        return RunHalted(reason=f"usage limit: {listener.limit_text}", until=listener.limit)
    if listener.was_asked and (waits := _waits_for_person(settings, order)):
        return waits
    was_told = result.exit_code in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    return RunHalted(reason=result.reason or "it was stopped before it had begun", was_told=was_told)


def _in_its_tree(order: Order, signals: Signals) -> Loaded:
    """The settings of the run, in the clone that the slot has made or in a worktree of the local repository."""
    spec = order.spec
    if order.tree:
        tree = Path(order.tree) / spec.folder
        loaded = _load(order, tree)
        if order.records:
            if _adopt(Path(order.records), tree, spec.text) and loaded.settings.workspace_setup:
                _set_up_again(loaded.settings, tree, signals, Path(order.records) / "setup")
            shutil.rmtree(order.records)
        branch = git.run(tree, "symbolic-ref", "--short", "HEAD").text
        settings = replace(loaded.settings, chosen=Workspace(tree, tree, branch), state_file=tree / STATE_FILE)
        return replace(loaded, settings=settings)
    loaded = _load(order, Path(spec.repository) / spec.folder)
    settings = loaded.settings
    same = re.compile(rf"{re.escape(settings.workspace_branch)}(-\d+)?")
    found = [one for one in worktrees_of(settings.wd) if one.stage is Stage.READY and same.fullmatch(one.branch)]
    there = next((one for one in found if one.tree.is_dir()), None) or create(settings, order.title)
    return replace(loaded, settings=in_workspace(settings, there.workspace))


def _load(order: Order, wd: Path) -> Loaded:
    """The settings of the task, confined at least as much as this machine wants."""
    loaded = load_task_settings(order.spec, order.task, order.attempt, wd, order.providers)
    return replace(loaded, settings=confine(loaded.settings, order.sandbox))


def _set_up_again(settings: Settings, tree: Path, signals: Signals, place: Path) -> None:
    """Run the setup command in a clone that is new while its run is not: a checkpoint has nothing that git ignores."""
    line = settings.workspace_setup
    ended = ConfinedCommands(settings, tree, place).run(line, settings.response_timeout, signals.deferred)
    if ended.exit_code:
        raise setup_failure(line, ended)


def _adopt(records: Path, tree: Path, text: str) -> bool:
    """Let the run of a checkpoint belong to this machine and this tree, with terminals that are still to be started.

    Whether there is a run to go on with. One with another task text is none: its checks would be other ones.
    """
    if not (records / STATE).is_file():
        return False
    state = decode_state((records / STATE).read_bytes(), records / STATE)
    if state.prompt.strip() != text.strip():
        return False
    record = RunRecord(tree, state.run_id)
    shutil.rmtree(record.folder, ignore_errors=True)
    record.open()
    for path in sorted(records.rglob("*")):
        if path.is_file() and not path.is_symlink():
            place = record.folder / path.relative_to(records)
            files.make_folder(place.parent)
            files.write(place, path.read_bytes())
    moved = replace(state, wd=str(tree))
    moved = without_terminals(moved) if state.final_status is Status.RUNNING else moved
    save(moved, tree / STATE_FILE, record, "")
    record.restore_copies()
    return not not_resumable_reason(moved, tree)


def _ended(settings: Settings, order: Order) -> RunEnded | None:
    """How the run of this task has ended in this tree; None where it has not."""
    tree = settings.workspace.tree
    saved = load_project_state(tree)
    if saved is None or saved.final_status is Status.RUNNING or saved.prompt.strip() != order.spec.text.strip():
        return None
    tokens, cost = _used(RunRecord(tree, saved.run_id))
    commit = git.run(tree, "rev-parse", "HEAD").text
    if saved.final_status is not Status.PASS:
        reason = f"its last round ({saved.current_round}) has failed"
    elif not order.tree and uncommitted(settings):
        reason = f"its work could not be committed, and is in {tree}"
    else:
        reason = ""
    outcome = TaskOutcome(
        verdict=saved.final_status,
        branch=settings.workspace.branch,
        commit=commit,
        run=saved.run_id,
        tokens=tokens,
        cost=cost,
        reason=reason,
    )
    return RunEnded(outcome=outcome)


def _waits_for_person(settings: Settings, order: Order) -> RunHalted | None:
    """That the run waits for a person, and until when; None where it does not, or the person has answered."""
    tree = settings.workspace.tree
    saved = load_project_state(tree)
    if saved is None or saved.final_status is not Status.RUNNING or not saved.waiting:
        return None
    step = WaitForPerson(Gate(saved.waiting), saved.sent_back)
    people, answer = People(RunRecord(tree, saved.run_id).folder), order.approval
    if answer and answer.step == step.key:
        with suppress(RunError):  # it is written down already
            people.decide(step.key, Decision(answer.approved, answer.by, answer.at, answer.notes))
    until = saved.waiting_since + settings.approve_timeout if settings.approve_timeout else 0.0
    if people.decision(step.key) or 0 < until <= time.time():
        return None
    what = f"waits for approval of the {GATES[step.gate]}"
    return RunHalted(reason=f"{what}: {program()} queue approve {order.task}", until=until, gate=step.key)


def _used(record: RunRecord) -> tuple[int, float]:
    """The tokens and the money that a run has used, by its journal."""
    turns = [event for event in Journal.of(record).read() if isinstance(event, ReplyTaken | ReplyMissed)]
    return sum(turn.tokens.total for turn in turns if turn.tokens), sum(turn.cost or 0.0 for turn in turns)


class _Listener:
    """Tells the slot of the run's progress, and makes a checkpoint before each prompt, when no agent is at work."""

    def __init__(self, settings: Settings, order: Order, tell: Tell) -> None:
        self._settings, self._order, self._tell = settings, order, tell
        self._moved = Moved()
        self.limit = 0.0
        self.limit_text = ""
        self.was_asked = False
        """whether the run has come to a place at which it waits for a person"""

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted(run_id=run_id) | RunResumed(run_id=run_id):
                tokens, cost = _used(RunRecord(self._settings.workspace.tree, run_id))
                self._now(run=run_id, tokens=tokens, cost=cost)
            case PromptSent(round=number, role=role):
                self._now(round=number, phase=str(BY_NAME[role].phase), agent=role)
                self._checkpoint()
            case ReplyTaken(tokens=tokens, cost=cost) | ReplyMissed(tokens=tokens, cost=cost):
                used = self._moved.tokens + (tokens.total if tokens else 0)
                self._now(tokens=used, cost=self._moved.cost + (cost or 0.0))
            case LimitReached(until=until, text=text):
                self._limit_reached(until, text)
            case ApprovalAsked():
                self.was_asked = True
                os.kill(os.getpid(), signal.SIGTERM)  # the slot is for others meanwhile

    def _now(self, **changes: object) -> None:
        self._moved = self._moved.model_copy(update=changes)
        self._tell(self._moved)

    def _checkpoint(self) -> None:
        if not self._order.makes_checkpoints:
            return
        try:
            self._tell(CheckpointMade(commit=make_checkpoint(Path(self._order.tree), self._moved.run)))
        except GitError as error:  # the run itself can go on; a takeover begins at an earlier one
            print(f"there is no checkpoint: {error}", file=sys.stderr)

    def _limit_reached(self, until: str, text: str) -> None:
        """Stop the run at a usage limit that lasts: the slot is for others meanwhile."""
        moment = datetime.fromisoformat(until).replace(tzinfo=UTC).timestamp()
        if moment - time.time() > _SHORT_LIMIT:
            self.limit, self.limit_text = moment, text
            os.kill(os.getpid(), signal.SIGTERM)


def _watch_slot(patience: float) -> None:
    """Stop this process when its slot is gone, or has not confirmed for too long that it has the task."""
    confirmed, handle = time.monotonic(), sys.stdin.fileno()
    while True:
        left = confirmed + patience - time.monotonic()
        if left <= 0:
            break
        if select.select([handle], [], [], left)[0]:
            if not (data := os.read(handle, 4096)):
                break
            confirmed = max(confirmed, last_confirmed(data))
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(min(_LAST_WORDS, patience / 2))
    os._exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
