"""One look at one thing, and how bad what it found is."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """With one failure a run could not start."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, and how to mend it."""

    name: str
    level: Level
    found: str
    mend: str = ""


def ok(name: str, found: str) -> Check:
    return Check(name, Level.OK, found)


def warning(name: str, found: str, mend: str) -> Check:
    return Check(name, Level.WARNING, found, mend)


def failure(name: str, found: str, mend: str) -> Check:
    return Check(name, Level.FAILURE, found, mend)
