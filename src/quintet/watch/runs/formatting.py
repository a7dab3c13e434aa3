"""Numbers and times as people read them."""

from datetime import datetime
from typing import Final

from quintet.ansi import CONTROLS

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
    """A duration as a running clock shows it: `0:08`, `4:05`, `2:07:30`."""
    whole = max(round(seconds), 0)
    minutes = f"{whole % _HOUR // _MINUTE}:{whole % _MINUTE:02d}"
    return minutes if whole < _HOUR else f"{whole // _HOUR}:{minutes.rjust(5, '0')}"


def short_number(number: int) -> str:
    """`950`, `8.4k`, `125k`, `1.3M`."""
    for size, letter in ((_MEGA, "M"), (_KILO, "k")):
        if number >= size:
            value = number / size
            return f"{value:.0f}{letter}" if value >= _ROUND_FROM else f"{value:.1f}{letter}"
    return str(number)


def money(cost: float) -> str:
    """An amount in the currency of the prices in the settings."""
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.4f}"


def date_time(seconds: float) -> str:
    """A date and time in this machine's time zone."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}" if seconds else "unknown"


def local_date_time(text: str) -> str:
    """An ISO date and time in this machine's time zone; any other text as it is."""
    try:
        return date_time(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return text


def time_of_day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%H:%M:%S}" if seconds else "--:--:--"


def printable(text: str) -> str:
    """A text of an agent without characters that control a terminal or change the direction of writing."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    return " ".join(printable(text).split())
