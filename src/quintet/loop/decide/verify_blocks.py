"""The `verify` blocks of a task: fenced code, read as CommonMark reads it, that a shell can run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quintet.loop.decide.markup import FenceLine, fence_line

INFO: Final = "verify"
"""the first word behind the marks that open a block"""
LONGEST_SCRIPT: Final = 100_000
"""bytes; a shell takes no longer argument"""
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])( {1,4})(?=\S)")
_LOOKS_LIKE_ONE: Final = re.compile(rf"[ \t>*+\-\d.)]*+(?:`{{3,}}+|~{{3,}}+)[^`\n]*\b{INFO}\b", re.IGNORECASE)
_DEEPEST: Final = 3
"""columns by which a fence may be indented; with more it is a line of code"""
_MOST_LISTS: Final = 100


class Block(NamedTuple):
    """A block, as it stands in the task."""

    line: int
    """at which it opens, counted from 0"""
    script: str
    is_closed: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it that a shell would run."""
        lines = (line.strip() for line in self.script.split("\n"))
        return all(not line or line.startswith("#") for line in lines)

    @property
    def cannot_be_run(self) -> bool:
        return "\0" in self.script or len(self.script.encode("utf-8", "replace")) > LONGEST_SCRIPT


class Blocks(NamedTuple):
    """What a section of a task has of them."""

    found: tuple[Block, ...]
    missed: tuple[int, ...]
    """lines that look as if they opened a block, and do not"""


@dataclass(frozen=True)
class _Fence:
    """A code fence that has been opened."""

    line: int
    marks: str
    column: int
    """of the marks; content loses as much indentation"""
    edge: int
    """where the content of the list item begins that the fence is in"""
    is_block: bool
    content: list[str] = field(default_factory=list)

    def is_closed_by(self, fence: FenceLine | None, column: int) -> bool:
        if fence is None or fence.info or fence.in_list:
            return False
        return fence.marks.startswith(self.marks) and 0 <= column - self.edge <= _DEEPEST

    def block(self, *, is_closed: bool) -> list[Block]:
        return [Block(self.line, "\n".join(self.content), is_closed)] if self.is_block else []


def find_blocks(lines: Sequence[str], span: range) -> Blocks:
    """Find the blocks in a span of lines."""
    found: list[Block] = []
    missed: list[int] = []
    edges: list[int] = []
    opened: _Fence | None = None
    for number in span:
        line = lines[number]
        text, fence = line.expandtabs(4), fence_line(line, 0)
        column = _column_of_marks(text, fence)
        if opened and text.strip() and _indentation(text) < opened.edge:  # the list item ends, and the fence with it
            found += opened.block(is_closed=False)
            opened = None
        if opened and opened.is_closed_by(fence, column):
            found += opened.block(is_closed=True)
            opened = None
            continue
        opens = False
        if opened:
            opened.content.append(_without_indentation(line, opened.column))
        else:
            edges = _edges(text, edges)
            edge = edges[-1] if edges else 0
            if fence and fence.opens and 0 <= column - edge <= _DEEPEST:
                opens = fence.info.split()[:1] == [INFO]
                opened = _Fence(number, fence.marks, column, edge, opens)
        if not opens and looks_like_one(line):
            missed.append(number)
    if opened:
        found += opened.block(is_closed=False)
    return Blocks(tuple(found), tuple(missed))


def looks_like_one(line: str) -> bool:
    """Whether somebody may take a line for the opening of a block."""
    return bool(_LOOKS_LIKE_ONE.match(line))


def _edges(text: str, edges: Sequence[int]) -> list[int]:
    """Where the contents of the list items begin that a line is in, from the outer to the inner."""
    if not text.strip():
        return list(edges)
    at = _indentation(text)
    inside = [edge for edge in edges if edge <= at]
    while len(inside) < _MOST_LISTS and at - (inside[-1] if inside else 0) <= _DEEPEST:
        item = _ITEM.match(text, at)
        if item is None:
            break
        at = item.end()
        inside.append(at)
    return inside


def _column_of_marks(text: str, fence: FenceLine | None) -> int:
    return text.index(fence.marks) if fence else 0


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _without_indentation(line: str, columns: int) -> str:
    """A line that has lost so many columns of white space, or as many as it has."""
    rest = line.lstrip(" \t")
    left = _indentation(line[: len(line) - len(rest)].expandtabs(4)) - columns
    if not columns:
        return line
    return " " * max(left, 0) + rest
