"""The books of a run: its state on disk, its journal, and those who are told of every event."""

from collections.abc import Callable, Iterable
from pathlib import Path

from quintet.config import Settings
from quintet.layout import JOURNAL
from quintet.loop.decide.state import State, has_all_terminals
from quintet.loop.journal import Event, Noted, RunResumed, RunStarted, RunStopped, Warned
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.notify import Notifier
from quintet.loop.record.signals import Signals
from quintet.loop.record.state_file import save_state

Listener = Callable[[Event], None]


class Books:
    """Everything that is written down. No signal interrupts a change of the state."""

    def __init__(self, settings: Settings, signals: Signals, listeners: Iterable[Listener]) -> None:
        self.state = State()
        self.ours = False
        """whether the state file is this run's"""
        self.partial: State | None = None
        """what the state file tells of while terminals are being started"""
        self.notifier = Notifier(settings, self.warn)
        self._path, self._wd = settings.state_file, settings.wd
        self._signals = signals
        self._listeners = tuple(listeners)
        self._journal: Journal | None = None
        self._early: list[Event] = []
        self._begun = False

    def open_journal(self, folder: Path) -> None:
        """From now on events are written; those that came before follow the one that begins the run."""
        self._journal = Journal(folder / JOURNAL, below=self._wd)

    def emit(self, event: Event) -> None:
        """Write an event to the journal and tell those who watch; what comes before the run begins waits for it."""
        begins = isinstance(event, RunStarted | RunResumed)
        self._begun = self._begun or begins or isinstance(event, RunStopped)
        if self._journal is None or not self._begun:
            self._early.append(event)
            return
        early, self._early = self._early, []
        for one in (event, *early) if begins else (*early, event):
            self._tell(self._journal, one)

    def _tell(self, journal: Journal, event: Event) -> None:
        """Write an event and pass it on. A journal that cannot be written stops nothing."""
        try:
            event = journal.write(event)
        except OSError as error:
            event = event.model_copy(update={"at": f"(journal: {error.strerror})"})
        for listener in self._listeners:
            listener(event)
        self.notifier(event)

    def note(self, text: str) -> None:
        self.emit(Noted(text=text))

    def warn(self, text: str) -> None:
        self.emit(Warned(text=text))

    def save(self, state: State) -> None:
        """Make this the state, here and on disk."""
        self.state, self.partial = state, None
        self.write(state)

    def write(self, state: State) -> None:
        """Write a state that is not yet the run's."""
        with self._signals.deferred():
            save_state(state, self._path, below=self._wd)
            self.ours = True

    def write_partial(self, state: State) -> None:
        """Before the last terminal is ready a saved state names fewer than five, and nobody resumes into it."""
        if not has_all_terminals(state):
            self.partial = state
            self.write(state)
