"""What in an agent's text is its own word: lines outside code fences and quotes, in whatever decoration."""

import re
from collections.abc import Iterator
from itertools import chain

DECOR = r"[ \t*_#+`•\-]*"
"""what may stand around a label or a verdict; never `>`, so a quoted line matches nothing"""
LEAD = rf"^{DECOR}(?:\d{{1,2}}[.)]{DECOR})?"
"""the start of a line that carries a label: decoration, or a number in a list"""

_FENCE = re.compile(
    r"^[ \t]*(?P<item>(?:(?:[-*+•]|\d{1,2}[.)])[ \t]+)*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>.*)$", re.MULTILINE
)


def normalise(text: str) -> str:
    """One kind of line end, no byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def label(name: str) -> re.Pattern[str]:
    """A line that opens the section `name`: `NAME:`, `**Name:** text`, `## Name`."""
    words = r"[\\_ \t]+".join(re.escape(word) for word in name.split("_"))
    return re.compile(rf"{LEAD}{words}{DECOR}(?::|$)", re.MULTILINE | re.IGNORECASE)


def fences(text: str) -> Iterator[tuple[int, int]]:
    """Where the code fences are, from the first character of the opening line to the end of the closing one.

    A fence line with a language inside a fence opens an inner one, because models wrap whole documents in a
    fence; where that leaves a fence open at the end, such a line is taken for a line of code. A fence that
    nobody closes reaches beyond the end.
    """
    nested = all(end <= len(text) for _, end in _spans(text, nested=True))
    return _spans(text, nested=nested)


def _spans(text: str, *, nested: bool) -> Iterator[tuple[int, int]]:
    open_fences: list[str] = []
    start = 0
    for match in _FENCE.finditer(text):
        item, marks, info = match.group("item", "marks", "info")
        if ("`" in info and marks[0] == "`") or (item and open_fences):
            continue
        if not open_fences:
            open_fences, start = [marks], match.start()
        elif info and nested:
            open_fences.append(marks)
        elif not info and marks[0] == open_fences[-1][0] and len(marks) >= len(open_fences[-1]):
            open_fences.pop()
            if not open_fences:
                yield start, match.end()
    if open_fences:
        yield start, len(text) + 1


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
