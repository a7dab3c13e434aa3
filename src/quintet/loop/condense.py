"""Shortening: what of a reply travels on, so that prompts stay small and nothing that matters is lost."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Final, NamedTuple

from quintet.config import Settings
from quintet.loop.gate import EVIDENCE, RESULT_LINE, REVIEW_NOTES, section
from quintet.loop.markup import DECOR, LEAD, normalise, own, unwrap

LONGEST_LINE: Final = 2_000
"""characters of one line that a shortened text keeps"""
LONGEST_TEXT: Final = 400_000
"""characters that are searched for sections: of a longer reply the beginning and the end, half each"""

ANALYST_SECTIONS: Final = {
    "artifacts": r"artifacts?(?: reviews?)?",
    "implementation": r"implementation (?:notes?|guidance|plan)",
    "risks": r"risks?",
    "downstream": r"downstream",
    "handoff": r"(?:explicit )?hand-?offs?",
}
"""what the programmer gets of the analyst's summary"""

PROGRAMMER_SECTIONS: Final = {
    "files": r"(?:files? (?:changed|modified|touched|added)|(?:changed|modified) files?|changes)",
    "behaviour": r"(?:(?:implemented )?behaviou?rs?|what (?:was|is) implemented)",
}
"""what the tester gets of the programmer's summary"""

_LEFT_OUT: Final = {
    "traceability": r"(?:p1[^\n:]{0,9}p4|traceability)",
    "phases": r"(?:phased delivery|delivery phases)",
    "limitations": r"(?:known )?limitations?",
    "validation": r"(?:validation|tests? (?:run|results?))",
    "questions": r"open questions?",
}
"""sections that stay behind; they are known so that they end the one before them"""

_REQUIRED = re.compile(
    rf"{LEAD}(?:(?:required|requested|necessary|mandatory|blocking) (?:changes?|fix(?:es)?|items?|issues?|revisions?)"
    rf"|changes? (?:required|requested|needed)|must[ -](?:fix|change|do)|blockers?){DECOR}"
    rf"(?:\([^)\n]*\){DECOR})?(?::|$)",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(
    r"^(?P<hashes>#{1,6})[ \t]+\S.*$"  # ATX
    r"|^[ \t]*(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__)[ \t]*:?[ \t]*$"  # a line in bold
    r"|^[A-Z][A-Z0-9_ /-]{2,50}:.*$"  # LABEL: ...
    r"|^[A-Z][^\n:.]{0,50}:[ \t]*$"  # A label with nothing behind it:
    r"|^\S[^\n]{0,80}\n(?:={3,}|-{3,})[ \t]*$",  # underlined
    re.MULTILINE,
)
_NO_ATX = 7
"""the rank of a heading that is no ATX heading: any ATX heading ends its section"""


def extract_review_notes(text: str, settings: Settings) -> str:
    """A review from its notes on; where the cap cuts, the required changes stay and the middle goes."""
    text = _readable(text)
    notes = section(text, REVIEW_NOTES)
    text = (notes or text).strip()
    cap = settings.max_feedback_lines
    lines = text.split("\n")
    required = next(own(_REQUIRED, text), None) if len(lines) > cap else None
    if required is None:
        return cap_lines(lines, cap, tail=cap // 2 if notes else 0)
    end = next((heading.start() for heading in own(_HEADING, text) if heading.start() > required.start()), len(text))
    block = range(text.count("\n", 0, required.start()), text[:end].rstrip().count("\n") + 1)
    room = max(cap - len(block) - 2, 0)  # two lines may tell what is left out
    others = chain(range(block.start), range(block.stop, len(lines)))
    return _pick(lines, sorted([*islice(others, room), *block]))


def extract_test_evidence(text: str, settings: Settings) -> str:
    """A test report's verdict and its evidence; where the cap cuts, the beginning and the end stay."""
    cap = settings.max_test_evidence_lines
    text = _readable(text)
    found = section(text, EVIDENCE)
    if found is None:
        return cap_lines(text.strip().split("\n"), cap, tail=0)
    body = unwrap(text)
    verdict = next(own(RESULT_LINE, body), None)
    before = [verdict[0].strip()] if verdict and verdict.start() < len(body.rstrip()) - len(found) else []
    return cap_lines([*before, *found.split("\n")], cap, tail=cap // 2)


def condense_for_programmer(text: str, settings: Settings) -> str:
    """The analyst's artifacts, implementation notes, risks, downstream impact and handoff."""
    return _condense(text, ANALYST_SECTIONS, settings)


def condense_for_tester(text: str, settings: Settings) -> str:
    """The programmer's changed files and implemented behaviour, without the known limitations."""
    return _condense(text, PROGRAMMER_SECTIONS, settings)


def cap_lines(lines: Sequence[str], cap: int, tail: int) -> str:
    """At most `cap` lines: the first ones, a note of how many are left out, and the last `tail`."""
    if len(lines) <= cap:
        return _pick(lines, range(len(lines)))
    tail = min(tail, cap - 1)
    return _pick(lines, [*range(cap - 1 - tail), *range(len(lines) - tail, len(lines))])


def _readable(text: str) -> str:
    text = normalise(text)
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _pick(lines: Sequence[str], kept: Iterable[int]) -> str:
    """The lines with these numbers, and a note in every gap."""
    picked: list[str] = []
    following = 0
    for number in [*kept, len(lines)]:
        if number > following:
            picked.append(f"[... {number - following} lines left out ...]")
        if number < len(lines):
            picked.append(_shorten(lines[number]))
        following = number + 1
    return "\n".join(picked)


def _shorten(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]} [... {len(line) - LONGEST_LINE} characters left out ...]"


class _Section(NamedTuple):
    name: str
    lines: Sequence[str]


def _condense(text: str, wanted: Mapping[str, str], settings: Settings) -> str:
    if not settings.condense_cross_phase:
        return normalise(text).strip()
    text = unwrap(_readable(text)).strip()
    sections = _sections(text, wanted)
    kept = [part for part in sections if part.name in wanted]
    if not kept:
        rest = [line for part in sections if part.name not in _LEFT_OUT for line in part.lines]
        kept = [_Section("", rest or text.split("\n"))]
    shares = _shares([len(part.lines) for part in kept], settings.max_cross_phase_lines)
    return "\n".join(cap_lines(part.lines, share, tail=0) for part, share in zip(kept, shares, strict=True) if share)


def _sections(text: str, wanted: Mapping[str, str]) -> list[_Section]:
    """The text cut at its headings: every line is in exactly one part, named where its heading is a known one."""
    marks = {match.start(): (_rank(match), "") for match in own(_HEADING, text)}
    marks |= {match.start(): (_rank(match), match.lastgroup or "") for match in own(_known(tuple(wanted)), text)}
    sections: list[_Section] = []
    begin, rank, name = 0, 0, ""
    for start, (level, title) in [*sorted(marks.items()), (len(text), (0, "end"))]:
        if not title and name and level > rank:
            continue  # a heading inside the known section
        if text[begin:start].strip():
            sections.append(_Section(name, text[begin:start].rstrip().split("\n")))
        begin, rank, name = start, level, title
    return sections


def _rank(heading: re.Match[str]) -> int:
    return len(heading["hashes"] or "") or _NO_ATX


@cache
def _known(wanted: tuple[str, ...]) -> re.Pattern[str]:
    """A line that opens a known section in any common style: `## Risks`, `**Risks:** none`, `3. Risks:`, `- RISKS`.

    The title must be followed by a colon, the end of its bold type or the end of the line, so that a sentence
    which begins with the same word is none; behind hashes anything may follow.
    """
    names = {name: words for name, words in (ANALYST_SECTIONS | PROGRAMMER_SECTIONS).items() if name in wanted}
    titles = "|".join(f"(?P<{name}>{words.replace(' ', '[ _-]+')})" for name, words in (names | _LEFT_OUT).items())
    item = r"[ \t]*(?:[-*+•][ \t]+)?(?:\d{1,2}[.)][ \t]*)?"
    return re.compile(
        rf"^{item}(?:(?P<hashes>\#{{1,6}})[ \t]*)?[*_]{{0,3}}(?:\d{{1,2}}[.)][ \t]*)?(?:{titles})(?![a-z0-9])"
        r"(?(hashes)|(?:[^\n:.*]{0,50}(?::|\*\*)|[*_ \t]*$))",
        re.MULTILINE | re.IGNORECASE,
    )


def _shares(sizes: Sequence[int], cap: int) -> list[int]:
    """How many lines each part may keep: short parts all theirs, the others what is left in equal shares."""
    shares = [0] * len(sizes)
    left = cap
    for done, number in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[number] = min(sizes[number], left // (len(sizes) - done))
        left -= shares[number]
    return shares
