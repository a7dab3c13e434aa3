"""A line now and then that says which agent is at work, where there is no live view."""

from collections.abc import Callable

from quintet.loop.journal import Event
from quintet.watch.runs.formatting import duration, short_number
from quintet.watch.runs.model import Run, add_event, timestamp
from quintet.watch.runs.terminal_status import TurnActivity


class Progress:
    """Makes a line when an agent is at work and nothing was printed for so many seconds."""

    def __init__(self, every: float, ask: Callable[[Run, str], TurnActivity]) -> None:
        self.every = every
        self._ask = ask
        self._run = Run()
        self._last_line_at = 0.0

    def add(self, event: Event) -> None:
        self._run = add_event(self._run, event)
        self._last_line_at = max(self._last_line_at, timestamp(event.at))

    def due_line(self, now: float) -> str:
        """The line to print now, or nothing."""
        run, turn = self._run, self._run.current
        if self.every <= 0 or turn is None or not run.is_running or now - self._last_line_at < self.every:
            return ""
        self._last_line_at = now
        found = self._ask(run, turn.role.name)
        tokens = found.tokens + (run.tokens.total if run.tokens else 0)
        parts = [f"{turn.role.label} has been at work for {duration(run.worked(turn, now))}"]
        parts += [f"{short_number(tokens)} tokens so far in this run"] if tokens else []
        parts += [f"last: {found.last_step}"] if found.last_step else []
        return "; ".join(parts)
