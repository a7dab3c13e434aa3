"""The record of a run: its state on disk, its journal, its archive, and those who hear of every event."""

import contextlib
from collections.abc import Callable, Iterable

from quintet.config import Settings
from quintet.loop.decide import flow
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import Outcome, Step
from quintet.loop.journal import Event, Noted, RunResumed, RunStarted, RunStopped, Warned
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.lock import sign_again
from quintet.loop.record.notify import Notifier
from quintet.loop.record.people import People
from quintet.loop.record.responses import Responses
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import digest_of, save
from quintet.loop.record.signals import Signals
from quintet.loop.record.state_file import name_state_file

Listener = Callable[[Event], None]


class RunStore:
    """Keeps one run. `fold` is the only way to change its state, and no signal interrupts it."""

    def __init__(
        self,
        settings: Settings,
        signals: Signals,
        listeners: Iterable[Listener],
        state: State,
        early: Iterable[Event] = (),
        *,
        owns_state_file: bool = False,
    ) -> None:
        """Make the run's folders. `early` events follow the one that begins the run.

        `owns_state_file`: the state file is this run's already.
        """
        self.state = state
        self.owns_state_file = owns_state_file
        self.settings, self.signals = settings, signals
        self.record = RunRecord(settings.workspace.tree, state.run_id)
        self.record.open()
        self.people = People(self.record.folder)
        self.responses = Responses(self.record, sandboxed=settings.is_sandboxed)
        self.responses.ensure_response_dir()
        self._listeners = tuple(listeners)
        self._early = list(early)
        self._begun = False
        self._journal = Journal.of(self.record)
        self._copied = digest_of(settings.state_file) if owns_state_file else ""
        """the digest of what this run wrote to the state file last"""
        self._written = self._look()
        self.notifier = Notifier(settings, state.run_id, self.warn)

    def fold(self, step: Step, outcome: Outcome) -> None:
        """Fold an outcome into the state, save it, and tell of what was decided."""
        with self.signals.deferred():
            # kept also where saving fails: the run's own record may have it, and only the copy in the project not
            self.state, events = flow.apply(self.state, step, outcome, self.settings)
            self._save()
            for event in events:
                self.emit(event)

    def emit(self, event: Event) -> None:
        """Write an event to the journal and tell the listeners; what comes before the run begins waits for that."""
        begins = isinstance(event, RunStarted | RunResumed)
        self._begun = self._begun or begins or isinstance(event, RunStopped)
        if not self._begun:
            self._early.append(event)
            return
        early, self._early = self._early, []
        for one in (event, *early) if begins else (*early, event):
            self._tell(one)

    def _tell(self, event: Event) -> None:
        """A journal that cannot be written stops nothing."""
        try:
            event = self._journal.write(event)
        except OSError as error:
            event = event.model_copy(update={"at": f"(journal: {error.strerror})"})
        for listener in self._listeners:
            listener(event)
        self.notifier(event)

    def note(self, text: str) -> None:
        """Tell the user something."""
        self.emit(Noted(text=text))

    def warn(self, text: str) -> None:
        """Warn the user of something."""
        self.emit(Warned(text=text))

    def restore_deleted_files(self) -> None:
        """Put back what an agent has deleted: agents may clean the work tree in the middle of their turn."""
        if not self.responses.ready:
            self.responses.ensure_response_dir()
        sign_again(self.settings.workspace.tree)
        with self.signals.deferred():
            self.record.restore_copies()
            if self.owns_state_file and (self._written != (found := self._look()) or not found):
                self._put_state_back()
            name_state_file(self.settings.workspace.tree, self.settings.state_file)

    def _put_state_back(self) -> None:
        """Save the state once more where the file is gone, or is not as this run has written it."""
        if self._look() and digest_of(self.settings.state_file) != self._copied:
            self.warn(f"{self.settings.state_file} was changed by somebody while the run was at work; it is put right")
        self._save()

    def _look(self) -> tuple[int, ...]:
        """What tells one version of the state file from another; nothing where it is gone."""
        with contextlib.suppress(OSError):
            found = self.settings.state_file.lstat()
            return found.st_mtime_ns, found.st_size, found.st_ino
        return ()

    def _save(self) -> None:
        self._copied = save(self.state, self.settings.state_file, self.record, self._copied)
        self.owns_state_file, self._written = True, self._look()
        name_state_file(self.settings.workspace.tree, self.settings.state_file)
