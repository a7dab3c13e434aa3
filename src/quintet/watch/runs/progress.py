"""A line once in a while that says who is at work, for those who see no live view."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quintet.loop.journal import Event
from quintet.watch.runs.formatting import count, duration, one_line
from quintet.watch.runs.model import RUNNING, Run, fold, seconds_of, tokens_of

_LONGEST: Final = 60
_COLOURS: Final = re.compile(r"\x1b\[[0-9;:]*m")
_STEP: Final = re.compile(r"^\s*[•●⏺]\s+(\S.*)$")
"""how Codex and Claude Code begin the line of a thing that they do or say"""


@dataclass(frozen=True)
class AtWork:
    """What a terminal tells of the turn that it is in."""

    tokens: int = 0
    screen: str = ""

    @property
    def last_step(self) -> str:
        """The last thing that the agent did, where its screen shows one."""
        lines = (_STEP.match(_COLOURS.sub("", line)) for line in reversed(self.screen.splitlines()))
        found = next((one_line(match[1]) for match in lines if match), "")
        return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 1].rstrip()}…"


class Progress:
    """Knows when a line is due: an agent is at work, and nothing was said for so many seconds."""

    def __init__(self, every: float, ask: Callable[[Run, str], AtWork]) -> None:
        self.every = every
        self._ask = ask
        self._run = Run()
        self._said = 0.0

    def add(self, event: Event) -> None:
        self._run = fold(self._run, event)
        self._said = max(self._said, seconds_of(event.at))

    def due(self, now: float) -> str:
        """The line for this moment, or nothing."""
        run, turn = self._run, self._run.current
        if self.every <= 0 or turn is None or run.status != RUNNING or now - self._said < self.every:
            return ""
        self._said = now
        found = self._ask(run, turn.role.name)
        before = tokens_of(run.handoffs)
        tokens = found.tokens + (before.total if before else 0)
        parts = [f"{turn.role.label} has been at work for {duration(run.worked(turn, now))}"]
        parts += [f"{count(tokens)} tokens so far in this run"] if tokens else []
        parts += [f"last: {found.last_step}"] if found.last_step else []
        return "; ".join(parts)
