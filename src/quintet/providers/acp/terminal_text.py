"""Text for a terminal: how many columns it takes, and lines that are folded or shortened to fit."""

import unicodedata
from collections.abc import Iterator
from typing import Final

from quintet.ansi import plain

_WIDE: Final = frozenset("WF")
_NO_COLUMN: Final = frozenset({"Mn", "Me", "Cf"})


def columns(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_column, text))


def _column(letter: str) -> int:
    if unicodedata.category(letter) in _NO_COLUMN:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1


def clean(text: str) -> str:
    """A text that can do nothing to a terminal; tabs become blanks."""
    return plain(text).expandtabs(4)


def fold(line: str, width: int) -> Iterator[str]:
    """A line in pieces that fit, broken at blanks where there are any."""
    begin = 0
    while begin < len(line):
        end = _fits(line, begin, width)
        blank = line.rfind(" ", begin + 1, end + 1) if end < len(line) else -1
        if blank > begin and line[begin:blank].strip():
            yield line[begin:blank]
            begin = blank + 1
        else:
            yield line[begin:end]
            begin = end


def _fits(line: str, begin: int, width: int) -> int:
    """The end of what fits from a place on; at least one letter."""
    window = line[begin : begin + width]
    if window.isascii():
        return begin + len(window)
    taken, end = 0, begin
    while end < len(line) and (taken := taken + _column(line[end])) <= width:
        end += 1
    return max(end, begin + 1)


def shorten(text: str, width: int) -> str:
    """A text in one line, cut where it is too long."""
    line = " ".join(clean(text[: 4 * width + 400]).split())
    if columns(line) <= width:
        return line
    return line[: _fits(line, 0, max(width - 1, 1))] + "…"
