"""The result of one check of `quintet doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a result is; with a failure a run cannot start."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class CheckResult:
    """What was checked, what was found, and how to fix it."""

    name: str
    level: Level
    found: str
    fix: str = ""


def ok(name: str, found: str) -> CheckResult:
    return CheckResult(name, Level.OK, found)


def warning(name: str, found: str, fix: str) -> CheckResult:
    return CheckResult(name, Level.WARNING, found, fix)


def failure(name: str, found: str, fix: str) -> CheckResult:
    return CheckResult(name, Level.FAILURE, found, fix)
