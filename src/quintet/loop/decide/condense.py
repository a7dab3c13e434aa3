"""Shortening: what of a reply travels on, so that prompts stay small and nothing that matters is lost."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from quintet.config import Settings
from quintet.loop.decide.gate import EVIDENCE, RESULT_LINE, REVIEW_NOTES, Verdict, section
from quintet.loop.decide.markup import DECOR, LEAD, normalise, own, unwrap

LONGEST_LINE: Final = 2_000
"""characters of one line that a shortened text keeps"""
LONGEST_TEXT: Final = 410_000
"""characters that are searched for sections: of a longer reply the beginning and the end, half each"""

ANALYST_SECTIONS: Final = {
    "artifacts": r"artifacts?(?: reviews?)?(?: per file)?",
    "implementation": r"implementation (?:notes?|guidance|plan)",
    "risks": r"risks?(?: and mitigations?)?",
    "downstream": r"(?:downstream(?: contracts?)?(?: impacts?)?|contract impacts?)",
    "handoff": r"(?:(?:explicit )?hand(?:-| )?offs?(?: notes?)?|next steps?)(?: (?:for|to) (?:the )?programmer)?",
}
"""what the programmer gets of the analyst's summary"""

PROGRAMMER_SECTIONS: Final = {
    "files": r"(?:files? (?:changed|modified|touched|added)|(?:changed|modified) files?|changes)",
    "behaviour": r"(?:(?:implemented )?behaviou?rs?(?: implemented)?|what (?:was|is) implemented)",
}
"""what the tester gets of the programmer's summary"""

_LEFT_OUT: Final = {
    "traceability": r"(?:p1[^\n:]{0,9}p4(?: traceability)?|traceability)",
    "phases": r"(?:phased delivery(?: coverage)?|delivery phases)",
    "limitations": r"(?:known )?limitations?",
    "validation": r"(?:validation|tests? (?:run|results?))",
    "questions": r"open questions?",
}
"""sections that stay behind; they are known so that they end the one before them"""

_REQUIRED = re.compile(
    rf"{LEAD}(?:(?:required|requested|necessary|mandatory|blocking)[ _-]+"
    r"(?:changes?|fix(?:es)?|items?|issues?|revisions?|modifications?)"
    r"|changes?[ _-]+(?:required|requested|needed)|must[ _-]+(?:fix|change|do)|blockers?)\b[^\n:.]{0,40}"
    rf"(?::(?!{DECOR}(?:none|nothing|n/a)\b)|$)",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(
    r"^(?P<hashes>#{1,6})[ \t]+\S.*$"
    r"|^(?P<underlined>\S[^\n]{0,80}\n(?:={3,}|-{3,}))[ \t]*$"
    r"|^[ \t]*(?P<bold>(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__))[ \t]*:?[ \t]*$"
    r"|^(?P<label>[A-Z][^\n:.]{0,50}:)[ \t]*$",
    re.MULTILINE,
)
_UNDERLINED, _ATX, _BOLD, _LABEL, _INLINE, _ITEM = 2, 6, 7, 8, 9, 10
"""how deep a heading is: one to six hashes, bold type, a label, a label with text behind it, a list item"""


def extract_review_notes(text: str, settings: Settings) -> str:
    """A review from its notes on; where the cap cuts, the required changes stay and the middle goes."""
    text = _body(text)
    opening = next(own(REVIEW_NOTES, text), None)
    start = opening.start() if opening else 0
    before = text[:start].rstrip()
    above_lines = before.split("\n")
    early = [above_lines[number] for number in _required(before)]
    lines = [*early, *text[start:].split("\n")]
    cap = settings.max_feedback_lines
    required = _required("\n".join(lines)) if len(lines) > cap else []
    if not required:
        return cap_lines(lines, cap, tail=cap // 2 if opening else 0)
    blocks = set(required)
    above = range(required[0])
    below = [number for number in range(required[0], len(lines)) if number not in blocks]
    room = max(cap - len(blocks) - 2, 0)  # two lines may tell what is left out
    kept_above = min(len(above), max(room // 3, room - len(below)))
    return _pick(lines, sorted([*above[:kept_above], *below[: room - kept_above], *required]))


def _required(text: str) -> list[int]:
    """The lines of every list of required changes, each up to a heading that is not below its own."""
    titles = {match.start() for match in own(_REQUIRED, text)}
    if not titles:
        return []
    ranks = {match.start(): _rank(match) for match in own(_HEADING, text)}
    kept: list[int] = []
    inside = offset = 0
    after_gap = False
    for number, line in enumerate(text.split("\n")):
        rank = ranks.get(offset, _INLINE)
        if offset in titles:
            inside = min(rank, _LABEL)
        elif rank <= inside or (after_gap and line[:1].isalpha()):
            inside = 0  # a heading, or a paragraph of its own
        if inside:
            kept.append(number)
        after_gap = not line.strip()
        offset += len(line) + 1
    return kept


def extract_test_evidence(text: str, settings: Settings) -> str:
    """A test report's verdict and its evidence; where the cap cuts, the beginning and the end stay."""
    cap = settings.max_test_evidence_lines
    text = _readable(text)
    found = section(text, EVIDENCE)
    if found is None:
        return cap_lines(text.strip().split("\n"), cap, tail=0)
    body = unwrap(text)
    verdicts = [match for match in own(RESULT_LINE, body) if match.start() < len(body.rstrip()) - len(found)]
    # of two that contradict each other the negative one stands
    before = [
        verdict[0].strip() for verdict in sorted(verdicts, key=lambda match: match[1].upper() != Verdict.FAIL)[:1]
    ]
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


def _body(text: str) -> str:
    """A reply without the fence around it; an empty fence stays, so that there is something to show."""
    text = _readable(text)
    return unwrap(text).strip() or text.strip()


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
    text = _body(text)
    sections = _sections(text, wanted)
    kept = [part for part in sections if part.name in wanted]
    if not kept:
        rest = [line for part in sections if part.name not in _LEFT_OUT for line in part.lines]
        kept = [_Section("", rest or text.split("\n"))]
    shares = _shares([len(part.lines) for part in kept], settings.max_cross_phase_lines)
    return "\n".join(cap_lines(part.lines, share, tail=0) for part, share in zip(kept, shares, strict=True) if share)


def _sections(text: str, wanted: Mapping[str, str]) -> list[_Section]:
    """The text cut at its headings: every line is in exactly one part, named after the known section it is in."""
    marks = {match.start(): (_rank(match), "") for match in own(_HEADING, text)}
    for match in own(_known(tuple(wanted)), text):
        rank, _ = marks.get(match.start(), (_LABEL, ""))
        marks[match.start()] = (_known_rank(match, rank), match.lastgroup or "")
    sections: list[_Section] = []
    around: list[tuple[int, str]] = []
    begin, name = 0, ""
    for start, (rank, title) in [*sorted(marks.items()), (len(text), (0, "end"))]:
        if around and _is_content(rank, title, around[-1][0]):
            continue
        while around and around[-1][0] >= rank:
            around.pop()
        if title:
            around.append((rank, title))
        following = around[-1][1] if around else ""
        if following == name and not title:
            continue
        if text[begin:start].strip():
            sections.append(_Section(name, text[begin:start].rstrip().split("\n")))
        begin, name = start, following
    return sections


def _is_content(rank: int, title: str, around: int) -> bool:
    """Whether what looks like a heading belongs to the known section around it.

    A label that nobody knows does, whatever it says: rather a line too many than a handoff cut short.
    """
    if rank == _INLINE:
        return around <= _ATX
    return around < rank if rank == _ITEM else not title and rank == _LABEL


def _rank(heading: re.Match[str]) -> int:
    ranks = {"underlined": _UNDERLINED, "bold": _BOLD, "label": _LABEL}
    return len(heading["hashes"] or "") or ranks[heading.lastgroup or ""]


def _known_rank(heading: re.Match[str], rank: int) -> int:
    if heading["hashes"] or rank < _LABEL:
        return len(heading["hashes"] or "") or rank
    if heading["item"]:
        return _ITEM
    text = heading.string
    end = text.find("\n", heading.end())
    behind = text[heading.end() : end if end >= 0 else len(text)]
    return _INLINE if behind.strip("*_ \t") and "**" not in heading[0] else _LABEL


@cache
def _known(wanted: tuple[str, ...]) -> re.Pattern[str]:
    """A line that opens a known section in any common style: `## Risks`, `**Risks:** none`, `3. Risks:`, `- RISKS`.

    The title must be followed by a colon, the end of its bold type or the end of the line, so that a sentence
    which begins with the same word is none; behind hashes anything may follow.
    """
    names = {name: words for name, words in (ANALYST_SECTIONS | PROGRAMMER_SECTIONS).items() if name in wanted}
    titles = "|".join(f"(?P<{name}>{words.replace(' ', '[ _-]+')})" for name, words in (names | _LEFT_OUT).items())
    item = r"[ \t]*(?P<item>(?:[-*+•][ \t]+)?(?:\d{1,2}[.)][ \t]*)?)"
    return re.compile(
        rf"^{item}(?:(?P<hashes>\#{{1,6}})[^\w\n]{{0,6}})?[*_]{{0,3}}(?:\d{{1,2}}[.)][ \t]*)?(?:{titles})(?![a-z0-9])"
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
