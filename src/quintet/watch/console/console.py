"""A run in a terminal: as a live view, as a line for each event, or as the lines of its journal."""

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol, Self

import click

from quintet.loop.journal import Event, RunStopped
from quintet.program import program
from quintet.prose import for_stream
from quintet.watch.console.progress import Progress
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.formatting import one_line, time_of_day
from quintet.watch.runs.model import timestamp
from quintet.watch.runs.terminal_status import terminal_statuses, turn_activity

_TIME: Final = " " * len("00:00:00 ")
_TICK_SECONDS: Final = 1.0


class RunConsole(Protocol):
    """Shows the events of a run as they come."""

    def __call__(self, event: Event) -> None: ...

    def title(self, text: str) -> None:
        """Show the title of the task."""

    def earlier(self, events: Sequence[Event]) -> None:
        """Take the events from before a resume; they were shown when they happened."""

    def gone(self) -> None:
        """Show that the run's process has ended without an event that says so."""


@dataclass(frozen=True)
class _Printer:
    must_go_on: bool
    """whether a closed output is ignored: a run does not end because nobody reads its lines"""

    def title(self, text: str) -> None:
        """Not printed."""

    def earlier(self, events: Sequence[Event]) -> None:
        """Not printed: they were, when they happened."""

    def gone(self) -> None:
        self.echo(f"The run's process has ended unexpectedly; {program()} run resumes it.", err=True)

    def echo(self, line: str, *, err: bool = False, rest: str | None = None) -> None:
        """Print a line. On a terminal it is wrapped, with `rest` before each further line, unless that is None."""
        try:
            stream = sys.stderr if err else sys.stdout
            click.echo(line if rest is None else for_stream(line, stream, rest), err=err)
        except BrokenPipeError:
            if not self.must_go_on:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), (sys.stderr if err else sys.stdout).fileno())


@dataclass(frozen=True)
class Lines(_Printer):
    """Prints one line for each event, with its time; the reason of a stop on standard error."""

    progress: Progress

    def __call__(self, event: Event) -> None:
        self.progress.add(event)
        line = f"{time_of_day(timestamp(event.at))} {one_line(line_for(event))}"
        self.echo(line, rest=_TIME, err=isinstance(event, RunStopped))

    def earlier(self, events: Sequence[Event]) -> None:
        for event in events:
            self.progress.add(event)

    def tick(self, now: float) -> None:
        """Print who is at work, where nothing was printed for a while."""
        if line := self.progress.due_line(now):
            self.echo(f"{time_of_day(now)} {line}", rest=_TIME)

    @contextmanager
    def ticking(self) -> Iterator[Self]:
        """Call `tick` from a thread until the block ends."""
        over = threading.Event()

        def tick_on() -> None:
            with suppress(BrokenPipeError):
                while not over.wait(min(self.progress.every, _TICK_SECONDS)):
                    self.tick(time.time())

        if self.progress.every > 0:
            threading.Thread(target=tick_on, name="quintet-progress", daemon=True).start()
        try:
            yield self
        finally:
            over.set()


class JournalLines(_Printer):
    """Prints each event as a JSON line, for programs."""

    def __call__(self, event: Event) -> None:
        self.echo(event.model_dump_json())


@contextmanager
def open_console(
    wd: Path,
    *,
    plain: bool = False,
    as_json: bool = False,
    must_go_on: bool = False,
    progress_seconds: float = 0.0,
    pass_screen_follows: bool = False,
) -> Iterator[RunConsole]:
    """The console that was asked for; a live view only where there is a terminal that can show it."""
    if as_json:
        yield JournalLines(must_go_on)
    elif plain or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        with Lines(must_go_on, Progress(progress_seconds, partial(turn_activity, wd))).ticking() as lines:
            yield lines
    else:
        from quintet.watch.console.live_view import LiveView  # noqa: PLC0415 - loading rich takes a while

        with LiveView(partial(terminal_statuses, wd), pass_screen_follows=pass_screen_follows) as view:
            yield view
