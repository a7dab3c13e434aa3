"""What in an agent's text is its own word: lines outside code fences and quotes, in whatever decoration."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

DECOR = r"[ \t\u00a0*_#+`•✅❌✔✗\ufe0f\-]*+"
"""what may stand around a label or a verdict; never `>`, so a quoted line matches nothing"""
LEAD = rf"^{DECOR}(?:\d{{1,2}}[.)]{DECOR})?"
"""the start of a line that carries a label: decoration, or a number in a list"""

MOST_FENCES: Final = 20_000
"""lines with the marks of a fence that are looked at; what comes behind them counts as code"""

_NEVER_CLOSED: Final = "\0"
_MARKS = re.compile(r"(`{3,}|~{3,})[ \t]*(.*)")
_BEFORE_MARKS = re.compile(r"[ \t]*((?:(?:[-*+•]|\d{1,2}[.)])[ \t]+)*)")


def normalise(text: str) -> str:
    """One kind of line end, no byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def label(name: str) -> re.Pattern[str]:
    """A line that opens the section `name`: `NAME:`, `**Name:** text`, `## Name`."""
    words = r"[\\_ \t]+".join(re.escape(word) for word in name.split("_"))
    return re.compile(rf"{LEAD}{words}{DECOR}(?:\([^()\n]{{1,40}}\){DECOR})?(?::|$)", re.MULTILINE | re.IGNORECASE)


def fences(text: str) -> Iterator[tuple[int, int]]:
    """Where the code fences are, from the first character of the opening line to the end of the closing one.

    A fence line with a language inside a fence opens an inner one, because models wrap whole documents in a
    fence; where that leaves a fence open at the end, such a line is taken for a line of code. A fence that
    nobody closes reaches beyond the end.
    """
    nested = all(end <= len(text) for _, end in _spans(text, nested=True))
    return _spans(text, nested=nested)


class FenceLine(NamedTuple):
    """A line with the marks of a code fence."""

    start: int
    end: int
    in_list: bool
    """it stands behind a list's bullet or number"""
    marks: str
    """none where there are too many fences to go on"""
    info: str

    @property
    def opens(self) -> bool:
        return "`" not in self.info or self.marks[0] == "~"


class Fences:
    """Follows the code fences of a text from one line with marks to the next."""

    def __init__(self, *, nested: bool) -> None:
        self._nested = nested
        self._open: list[str] = []

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def take(self, line: FenceLine) -> bool:
        """Go on to a line with marks; whether it belongs to a fence."""
        was_open = self.is_open
        if not line.marks:
            self._open = [_NEVER_CLOSED]
        elif not was_open:
            if line.opens:
                self._open = [line.marks]
        elif line.info and self._nested and line.opens and not line.in_list:
            self._open.append(line.marks)
        elif not line.info and not line.in_list and line.marks.startswith(self._open[-1]):
            self._open.pop()
        return was_open or self.is_open


def has_marks(text: str) -> bool:
    """Whether there can be a code fence; the quick answer for a long text."""
    return "```" in text or "~~~" in text


def fence_line(line: str, number: int) -> FenceLine | None:
    """A single line that has marks, as a line of a fence; `number` lines with marks came before it."""
    if number == MOST_FENCES:
        return FenceLine(0, len(line), False, "", "")
    match = _MARKS.search(line)
    before = match and _BEFORE_MARKS.fullmatch(line, 0, match.start())
    return FenceLine(0, len(line), bool(before[1]), match[1], match[2].rstrip()) if match and before else None


def _spans(text: str, *, nested: bool) -> Iterator[tuple[int, int]]:
    fences, start = Fences(nested=nested), 0
    for line in _fence_lines(text) if has_marks(text) else ():
        was_open = fences.is_open
        fences.take(line)
        if not was_open:
            start = line.start
        elif not fences.is_open:
            yield start, line.end
    if fences.is_open:
        yield start, len(text) + 1


def _fence_lines(text: str) -> Iterator[FenceLine]:
    line = 0
    for number, match in enumerate(_MARKS.finditer(text)):
        start = text.rfind("\n", line, match.start()) + 1 or line
        line = match.end() + 1
        if number == MOST_FENCES:
            yield FenceLine(start, len(text), False, "", "")
            return
        before = _BEFORE_MARKS.fullmatch(text, start, match.start())
        if before:
            yield FenceLine(start, match.end(), bool(before[1]), match[1], match[2].rstrip())


def unwrap(text: str) -> str:
    """The inside of a text that is one code fence from its first line to its last; any other text as it is."""
    body = text.strip()
    if not body.startswith(("```", "~~~")) or next(fences(body), None) != (0, len(body)):
        return text
    return body[body.index("\n") + 1 : body.rindex("\n")]


def own(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a line pattern that do not lie in a code fence."""
    matches = pattern.finditer(text)
    first = next(matches, None)
    if first is None:
        return
    spans = fences(text)
    begin, end = next(spans, (len(text) + 1, len(text) + 1))
    for match in chain([first], matches):
        while end <= match.start():
            begin, end = next(spans, (len(text) + 1, len(text) + 1))
        if match.start() < begin:
            yield match
