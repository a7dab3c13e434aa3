"""A property: a kind of input, examples of it, and what must hold for each."""

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

MOST_SECONDS: Final = 20.0
"""of processor time for one example: more is a hang"""


class Hangs(BaseException):
    """An example takes too long. No Exception: nothing may catch it on its way."""


@dataclass
class Property:
    """Something that holds whatever comes in."""

    kind: str
    name: str
    examples: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    tried: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"

    def hold(self, examples: int, number: int | None = None) -> None:
        """Try it; with a number as the seed always the same examples, else always those of its name."""

        def checked(example: Any) -> None:
            self.tried += 1
            with limited():
                self.check(example)

        # without this hypothesis would name every example after the same inner function
        checked.__qualname__ = str(self)
        test = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=number is None,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )(given(self.examples)(checked))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Generating overly large repr")  # of an example; it is meant to be large
            (test if number is None else seed(number)(test))()


ALL: Final[list[Property]] = []


def holds(kind: str, examples: st.SearchStrategy[Any]) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a function as what must hold for every example."""

    def register(check: Callable[[Any], None]) -> Callable[[Any], None]:
        ALL.append(Property(kind, check.__name__.replace("_", " "), examples, check))
        return check

    return register


@contextmanager
def limited() -> Iterator[None]:
    """End what takes too long, by the processor's clock: a busy machine is no hang."""

    def end(_: int, __: FrameType | None) -> None:
        raise Hangs(f"more than {MOST_SECONDS:.0f} s of processor time")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def one_line(error: Exception) -> None:
    """A user's mistake is told in one line that a terminal can show."""
    line = str(error)
    assert line, "an error without a word"
    assert len(line.splitlines()) == 1, f"an error of several lines: {line!r}"
    line.encode("utf-8")
