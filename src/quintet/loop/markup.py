"""What in an agent's text is its own word: lines outside code fences and quotes, in whatever decoration."""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, NamedTuple

DECOR = r"[ \t\u00a0*_#+`•✅❌✔✗\ufe0f\-]*+"
"""what may stand around a label or a verdict; never `>`, so a quoted line matches nothing"""
LEAD = rf"^{DECOR}(?:\d{{1,2}}[.)]{DECOR})?"
"""the start of a line that carries a label: decoration, or a number in a list"""

MOST_FENCES: Final = 20_000
"""lines with the marks of a fence that are looked at; what comes behind them counts as code"""

Reading = Callable[[str], Iterator[tuple[int, int]]]
"""a way to find the code fences"""

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


def plain_fences(text: str) -> Iterator[tuple[int, int]]:
    """The code fences as Markdown has them: none is inside another."""
    return _spans(text, nested=False)


def _spans(text: str, *, nested: bool) -> Iterator[tuple[int, int]]:
    if "```" not in text and "~~~" not in text:
        return  # the quick answer for a long text
    open_fences: list[str] = []
    start = 0
    for line in _fence_lines(text):
        if not line.marks:
            yield (start if open_fences else line.start), len(text) + 1
            return
        if not open_fences:
            if line.opens:
                open_fences, start = [line.marks], line.start
        elif line.info and nested and line.opens and not line.in_list:
            open_fences.append(line.marks)
        elif not line.info and not line.in_list and line.marks.startswith(open_fences[-1]):
            open_fences.pop()
            if not open_fences:
                yield start, line.end
    if open_fences:
        yield start, len(text) + 1


class _FenceLine(NamedTuple):
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


def _fence_lines(text: str) -> Iterator[_FenceLine]:
    line = 0
    for number, match in enumerate(_MARKS.finditer(text)):
        start = text.rfind("\n", line, match.start()) + 1 or line
        line = match.end() + 1
        if number == MOST_FENCES:
            yield _FenceLine(start, len(text), False, "", "")
            return
        before = _BEFORE_MARKS.fullmatch(text, start, match.start())
        if before:
            yield _FenceLine(start, match.end(), bool(before[1]), match[1], match[2].rstrip())


def unwrap(text: str) -> str:
    """The inside of a text that is one code fence from its first line to its last; any other text as it is."""
    body = text.strip()
    if not body.startswith(("```", "~~~")) or next(fences(body), None) != (0, len(body)):
        return text
    return body[body.index("\n") + 1 : body.rindex("\n")]


def own(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a line pattern that do not lie in a code fence."""
    return outside(pattern.finditer(text), text, fences)


def outside(matches: Iterator[re.Match[str]], text: str, reading: Reading) -> Iterator[re.Match[str]]:
    """Those of a text's matches that do not lie in a code fence."""
    first = next(matches, None)
    if first is None:
        return
    spans = reading(text)
    begin, end = next(spans, (len(text) + 1, len(text) + 1))
    for match in chain([first], matches):
        while end <= match.start():
            begin, end = next(spans, (len(text) + 1, len(text) + 1))
        if match.start() < begin:
            yield match
