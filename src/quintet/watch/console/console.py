"""The three ways to follow a run: a live view on a terminal, a line for each event, or the journal itself."""

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
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.formatting import one_line, time_of_day
from quintet.watch.runs.model import seconds_of
from quintet.watch.runs.progress import Progress

_GONE: Final = "The run's process is gone; {} run goes on with it."

_TIME: Final = " " * len("00:00:00 ")
_LOOK_SECONDS: Final = 1.0


class Show(Protocol):
    """Takes events as they come."""

    def __call__(self, event: Event) -> None: ...

    def title(self, text: str) -> None:
        """What the run's task is called."""

    def earlier(self, events: Sequence[Event]) -> None:
        """What happened before the run was stopped, where it goes on."""

    def gone(self) -> None:
        """The run's process is not there any more, and it said nothing of its end."""


@dataclass(frozen=True)
class _Printing:
    must_go_on: bool
    """whether the events are worth more than their reader, who may have gone: a run does not end for that"""

    def earlier(self, events: Sequence[Event]) -> None:
        """It was told when it happened."""

    def echo(self, line: str, *, err: bool = False, rest: str | None = None) -> None:
        """Print a line; `rest` is given for prose and indents what does not fit into its first line on a terminal."""
        try:
            stream = sys.stderr if err else sys.stdout
            click.echo(line if rest is None else for_stream(line, stream, rest), err=err)
        except BrokenPipeError:
            if not self.must_go_on:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), (sys.stderr if err else sys.stdout).fileno())


@dataclass(frozen=True)
class Lines(_Printing):
    """One line for each event, with its time; why a run stopped goes to the error stream."""

    progress: Progress

    def __call__(self, event: Event) -> None:
        self.progress.add(event)
        line = f"{time_of_day(seconds_of(event.at))} {one_line(line_for(event))}"
        self.echo(line, rest=_TIME, err=isinstance(event, RunStopped))

    def earlier(self, events: Sequence[Event]) -> None:
        for event in events:
            self.progress.add(event)

    def tick(self, now: float) -> None:
        """Say who is at work, where nothing was said for long."""
        if line := self.progress.due(now):
            self.echo(f"{time_of_day(now)} {line}", rest=_TIME)

    @contextmanager
    def ticking(self) -> Iterator[Self]:
        """Look at the clock in a thread of its own, until the run is over."""
        over = threading.Event()

        def look() -> None:
            with suppress(BrokenPipeError):
                while not over.wait(min(self.progress.every, _LOOK_SECONDS)):
                    self.tick(time.time())

        if self.progress.every > 0:
            threading.Thread(target=look, name="quintet-progress", daemon=True).start()
        try:
            yield self
        finally:
            over.set()

    def title(self, text: str) -> None:
        """Lines have none."""

    def gone(self) -> None:
        self.echo(_GONE.format(program()), err=True)


class JournalLines(_Printing):
    """The journal, for programs."""

    def __call__(self, event: Event) -> None:
        self.echo(event.model_dump_json())

    def title(self, text: str) -> None:
        """Programs need none."""

    def gone(self) -> None:
        self.echo(_GONE.format(program()), err=True)


@contextmanager
def showing(
    wd: Path,
    *,
    plain: bool = False,
    as_json: bool = False,
    must_go_on: bool = False,
    progress_seconds: float = 0.0,
    closes: bool = False,
) -> Iterator[Show]:
    """The way that was asked for; the live view only where there is a terminal that can draw it."""
    if as_json:
        yield JournalLines(must_go_on)
    elif plain or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        from quintet.watch.runs.terminal_status import at_work  # noqa: PLC0415

        with Lines(must_go_on, Progress(progress_seconds, partial(at_work, wd))).ticking() as lines:
            yield lines
    else:
        from quintet.watch.console.live import LiveView  # noqa: PLC0415 - rich is loaded only where it draws
        from quintet.watch.runs.terminal_status import statuses  # noqa: PLC0415

        with LiveView(lambda run: statuses(wd, run), closes=closes) as view:
            yield view
