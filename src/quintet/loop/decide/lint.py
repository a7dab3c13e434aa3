"""What a task file lacks: errors, with which no run begins, and warnings, with which one may be wasted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quintet.loop.decide.markup import normalise
from quintet.loop.decide.verify_blocks import INFO, LONGEST_SCRIPT, Block, Blocks, find_blocks, looks_like_one

EXPLORE_HEADER: Final = "*** ORIGINAL EXPLORE SUMMARY ***"
SCENARIO_HEADER: Final = "*** SCENARIO TEST ***"
HEADERS: Final = (EXPLORE_HEADER, SCENARIO_HEADER)
PLACEHOLDER: Final = "<<fill in: "
"""how every blank of a task template begins"""
SHORT_SUMMARY: Final = 8
"""words; less than that says nothing of the code that is there"""
_BLANK = re.compile(re.escape(PLACEHOLDER) + r".{0,200}?>>")
_UNFINISHED = re.compile(r"\b(?:TODO|TBD|FIXME|XXX)\b|\?\?\?|<(?:your|insert|describe|fill)\b[^<>\n]{0,80}>")
_EXPECTED = re.compile(
    r"\b(?:expect\w*|should|must|shall|exit (?:code|status)|exits?|prints?|returns?|shows?|outputs?|says?|contains?"
    r"|equals?|succeeds?|fails?|pass(?:es)?|then|result\w*)\b|=>|->|→",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"`|^\s*(?:\$|>|\d+[.)]|[-*] )\s*\S|\b(?:run|execute|start|call|open|visit|send|request|use|type|enter|click|when"
    r"|install|build|check|compare|read|cat|curl|python3?|pytest|npm|make|sh)\b",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a task file, and where."""

    line: int
    text: str
    is_error: bool = True

    @property
    def level(self) -> str:
        return "error" if self.is_error else "warning"


@dataclass(frozen=True)
class Sections:
    """A task file at its header lines."""

    lines: list[str]
    places: dict[str, list[int]]
    """by header the lines at which it stands, counted from 0"""

    def span(self, header: str) -> range:
        """The lines of a section, without its header."""
        begin = self.places[header][0] + 1
        later = [place for places in self.places.values() for place in places if place >= begin]
        return range(begin, min(later, default=len(self.lines)))

    def body(self, header: str) -> str:
        return "\n".join(self.lines[number] for number in self.span(header)).strip() if self.has(header) else ""

    def has(self, header: str) -> bool:
        return header in self.places


def sections_of(text: str) -> Sections:
    """Find the header lines; which comes first does not matter."""
    lines = normalise(text).split("\n")
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.rstrip() in HEADERS:
            places.setdefault(line.rstrip(), []).append(number)
    return Sections(lines, places)


def lint(text: str) -> list[Finding]:
    """All that is wrong with a task file; what a run would be refused for comes first."""
    found = sections_of(text)
    errors = [*_missing(found), *_blanks(found), *_bad_blocks(found)]
    return errors or list(_doubts(found))


def _missing(found: Sections) -> Iterator[Finding]:
    for header in HEADERS:
        if len(places := found.places.get(header, [])) > 1:
            first, second = places[0] + 1, places[1] + 1
            yield Finding(second, f'the line "{header}" stands twice, in lines {first} and {second}')
    for header in HEADERS:
        if not found.has(header):
            line, hint = _near_miss(found.lines, header)
            yield Finding(line, f'the section "{header}" is missing; {hint}')
        elif not found.body(header):
            line = found.places[header][0] + 1
            yield Finding(line, f'the section "{header}" is empty; write something below that line')


def _near_miss(lines: list[str], header: str) -> tuple[int, str]:
    words = re.sub(r"[^A-Z]", "", header)
    for number, line in enumerate(lines, 1):
        if len(line) < 2 * len(header) and re.sub(r"[^A-Z]", "", line.upper()) == words:
            return number, f"line {number} has to read exactly so"
    return len(lines), "add that line and the text below it"


def _blanks(found: Sections) -> Iterator[Finding]:
    for number, line in enumerate(found.lines, 1):
        if blank := _BLANK.search(line):
            yield Finding(number, f"a blank of the template is left: {blank[0]}")


def _blocks(found: Sections) -> Blocks:
    return find_blocks(found.lines, found.span(SCENARIO_HEADER)) if found.has(SCENARIO_HEADER) else Blocks((), ())


def _bad_blocks(found: Sections) -> Iterator[Finding]:
    for block in _blocks(found).found:
        if wrong := _wrong_with(block):
            yield Finding(block.line + 1, f"the {INFO} block {wrong}")


def _wrong_with(block: Block) -> str:
    if not block.is_closed:
        return "is not closed; end it with a line of the same marks, indented like its first"
    if block.is_empty:
        return "is empty; write the commands that have to succeed, or remove it"
    if block.cannot_be_run:
        return f"is no script: it holds a null byte, or more than {LONGEST_SCRIPT:,} bytes"
    return ""


def _missed_blocks(found: Sections) -> Iterator[Finding]:
    """What somebody may believe to be run, and is not."""
    span = found.span(SCENARIO_HEADER)
    for number in _blocks(found).missed:
        yield _doubt(number + 1, f'this opens no {INFO} block; the marks stand alone on their line with "{INFO}"')
    for number, line in enumerate(found.lines):
        if number not in span and looks_like_one(line):
            yield _doubt(number + 1, f'a {INFO} block is run only below "{SCENARIO_HEADER}"')


def _doubts(found: Sections) -> Iterator[Finding]:
    begin = min(places[0] for places in found.places.values())
    for number in range(begin):
        if found.lines[number].strip():
            yield _doubt(number + 1, "text before the first section reaches no agent")
            break
    explore, scenario = (found.places[header][0] + 1 for header in HEADERS)
    if len(found.body(EXPLORE_HEADER).split()) < SHORT_SUMMARY:
        yield _doubt(explore, "the explore summary is very short; say what should be different and where in the code")
    body = found.body(SCENARIO_HEADER)
    if not _ACTION.search(body):
        yield _doubt(scenario, "the scenario names nothing to run; say which command to run or what to do")
    if not _EXPECTED.search(body) and not _blocks(found).found:
        yield _doubt(scenario, "the scenario has no expected result; say what must come out (Expected: ...)")
    yield from _missed_blocks(found)
    for number, line in enumerate(found.lines, 1):
        if mark := _UNFINISHED.search(line):
            yield _doubt(number, f'"{mark[0]}" looks unfinished')


def _doubt(line: int, text: str) -> Finding:
    return Finding(line, text, is_error=False)
