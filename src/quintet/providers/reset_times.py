"""When a limit ends, as the agents put it into words: "try again at 3:05 PM", "resets Nov 16, 3pm (UTC)"."""

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from quintet.api.status import FailureKind

LIMITS: Final = frozenset({FailureKind.USAGE_LIMIT, FailureKind.RATE_LIMIT})
"""failures whose words may name their end"""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(
    r"\b(?:in|(?:resets?|retry|again)\s+after)\s+"
    r"((?:\d+(?:\.\d+)?\s*(?:s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)(?:\b|(?=\d))[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_RETRY_AFTER = re.compile(
    r"""\bretry[-_ ]after(?:[-_ ]seconds)?["']?\s*[:=]?\s*["']?(\d+(?:\.\d+)?)(?!\d|[:.-]\d)""", re.IGNORECASE
)
"""the HTTP header, in seconds, where a CLI passes it on"""
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])", re.IGNORECASE)
_MOMENT = re.compile(
    r"\b(?:resets?|again|until)\b(?:\s+(?:at|on))?\s+"
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?,?\s+(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap]\.?m\b)?(?:\s*\((?P<zone>[A-Za-z0-9_+/-]+)\))?",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"\|(\d{10})\b")
"""older releases of Claude Code: the time itself behind a bar"""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NOON: Final = 12
LATEST: Final = 2e10
"""a time in the year 2603; no limit lasts so long, and further away some readers take seconds for milliseconds"""
LONGEST_TEXT: Final = 10_000
"""characters in which a time is looked for"""


def reset_time(text: str, said_at: float) -> float | None:
    """The time that a text names, in seconds since the epoch; None where it names none.

    A time of day is the nearest one: a limit of hours is never further away than half a day. It means the end of
    the minute that it names.
    """
    moment = _named(text[:LONGEST_TEXT], said_at)
    return moment if moment is not None and 0.0 <= moment < LATEST else None


def _named(text: str, said_at: float) -> float | None:
    if found := _EPOCH.search(text):
        return float(found[1])
    if found := _SPAN.search(text):
        return said_at + sum(float(number) * _UNITS[unit.lower()] for number, unit in _PART.findall(found[1]))
    if found := _RETRY_AFTER.search(text):
        return said_at + float(found[1])
    found = _MOMENT.search(text)
    if found is None or not (found["minute"] or found["half"]):
        return None
    try:
        return _moment(found, datetime.fromtimestamp(said_at, _zone(found["zone"])).astimezone(_zone(found["zone"])))
    except (ValueError, OverflowError, OSError):
        return None


def _moment(found: re.Match[str], now: datetime) -> float:
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        if not 1 <= hour <= _NOON:
            raise ValueError
        hour = hour % _NOON + (_NOON if found["half"].lower().startswith("p") else 0)
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if found["month"]:
        year = int(found["year"] or now.year)
        at = at.replace(year=year, month=_MONTHS.index(found["month"].lower()) + 1, day=int(found["day"]))
        if not found["year"] and at < now - timedelta(days=180):
            at = at.replace(year=year + 1)
    else:
        at = min((at + timedelta(days=days) for days in (-1, 0, 1)), key=lambda one: abs(one - now))
    return at.timestamp() + 60.0


def _zone(name: str | None) -> tzinfo | None:
    """The named zone; this machine's where none is named, or one that nobody knows."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, LookupError):
        return None
