"""The result of one check of `quintet doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a result is; with a failure a run cannot start."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class DoctorFinding:
    """What was checked, what was found, and how to fix it."""

    name: str
    level: Level
    found: str
    fix: str = ""


def ok(name: str, found: str) -> DoctorFinding:
    return DoctorFinding(name, Level.OK, found)


def warning(name: str, found: str, fix: str) -> DoctorFinding:
    return DoctorFinding(name, Level.WARNING, found, fix)


def failure(name: str, found: str, fix: str) -> DoctorFinding:
    return DoctorFinding(name, Level.FAILURE, found, fix)
