"""Numbers and times as people read them."""

import re
from datetime import datetime
from typing import Final

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_KILO, _MEGA = 1000, 1_000_000
_ROUND_FROM: Final = 10


def duration(seconds: float) -> str:
    """`8 s`, `4 min 05 s`, `2 h 07 min`, `3 d 4 h`."""
    whole = max(round(seconds), 0)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02d} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def clock(seconds: float) -> str:
    """A stretch of time as a running clock shows it: `0:08`, `4:05`, `2:07:30`."""
    whole = max(round(seconds), 0)
    minutes = f"{whole % _HOUR // _MINUTE}:{whole % _MINUTE:02d}"
    return minutes if whole < _HOUR else f"{whole // _HOUR}:{minutes.rjust(5, '0')}"


def count(number: int) -> str:
    """`950`, `8.4k`, `125k`, `1.3M`."""
    for size, letter in ((_MEGA, "M"), (_KILO, "k")):
        if number >= size:
            value = number / size
            return f"{value:.0f}{letter}" if value >= _ROUND_FROM else f"{value:.1f}{letter}"
    return str(number)


def money(cost: float) -> str:
    """An amount in whatever currency the user's prices are in."""
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.4f}"


def moment(seconds: float) -> str:
    """A date and time of this machine's clock."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}" if seconds else "unknown"


def local_time(text: str) -> str:
    """A time that a journal tells, as this machine's clock shows it."""
    try:
        return moment(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return text


def time_of_day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%H:%M:%S}" if seconds else "--:--:--"


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """A text without what would steer a terminal or turn the direction of writing: agents' words are only shown."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    return " ".join(harmless(text).split())
