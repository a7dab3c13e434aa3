"""A review's three outcomes look different everywhere: approved, an approval that does not count, changes asked for."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from quintet.loop import journal
from quintet.loop.journal import Event
from quintet.roles import ANALYST, PEER_ANALYST
from quintet.watch.console.live_view import LiveFrame
from quintet.watch.dashboard.run_json import run_json
from quintet.watch.report.report_html import report_html
from quintet.watch.report.report_markdown import report_markdown
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.handoffs import VerdictKind
from quintet.watch.runs.model import run_from_events
from quintet.watch.runs.summary import summarise
from tests.watch.events import at, sent, started, taken, write

EARLY = "approval counts from cycle 2 on"
REVIEWS = (
    ("APPROVED", False, EARLY),
    ("APPROVED", False, "approved without a REVIEW_NOTES section"),
    ("REVISE", False, "the reviewer asks for changes"),
    ("", False, "the review has no verdict, so it counts as REVISE"),
    ("APPROVED", True, "approved"),
)
OUTCOMES = ["void", "void", "again", "again", "good"]


def judged(seconds: float, cycle: int, review: tuple[str, bool, str]) -> Event:
    verdict, approved, reason = review
    told = {"phase": "analyst", "round": 1, "cycle": cycle, "verdict": verdict, "approved": approved}
    more = {"evidence": ("artifact", "handoff") if approved else (), "reason": reason}
    return at(seconds, journal.ReviewJudged.model_validate(told | more))


@pytest.fixture
def events() -> list[Event]:
    told = started()
    for number, review in enumerate(REVIEWS, 1):
        begin = 100 * number
        told += [sent(begin, ANALYST, cycle=number), taken(begin + 40, ANALYST, cycle=number)]
        told += [sent(begin + 40, PEER_ANALYST, cycle=number), taken(begin + 80, PEER_ANALYST, cycle=number)]
        told.append(judged(begin + 80, number, review))
    return told


@pytest.fixture
def folder(tmp_path: Path, events: list[Event]) -> Path:
    return write(tmp_path / ".tmp" / "20260102-030405-abcdef", events)


def test_the_model_has_three_outcomes_of_a_review(events: list[Event]) -> None:
    assert [item.verdict and item.verdict.kind for item in run_from_events(events).verdicts] == OUTCOMES


def test_a_line_says_that_an_approval_does_not_count(events: list[Event]) -> None:
    lines = [line_for(event) for event in events if isinstance(event, journal.ReviewJudged)]
    assert lines[0] == f"⊘ analyst review 1: APPROVED, not counted: {EARLY}"
    assert lines[2] == "↺ analyst review 3: REVISE: the reviewer asks for changes"
    assert lines[3] == "↺ analyst review 4: no verdict: the review has no verdict, so it counts as REVISE"
    assert lines[4] == "✓ analyst review 5: APPROVED, with evidence of artifact, handoff"


def test_the_live_view_has_a_sign_and_a_colour_for_each(events: list[Event]) -> None:
    picture = LiveFrame()
    for event in events:
        picture.add(event)
    console = Console(width=80, height=24, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(picture.draw(80, 24, now=0))
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    colours = dict(re.findall("\x1b\\[1;(3\\d)m([⊘↺✓]) ", drawn))
    assert len(colours) == 3, "each sign has a colour of its own"
    assert set(colours.values()) == {"⊘", "↺", "✓"}
    assert "not counted: approved without a REVIEW" in drawn


def test_the_markdown_report_has_a_sign_for_each(folder: Path) -> None:
    text = report_markdown(summarise(folder))
    assert text.count("| ⊘ APPROVED, not counted |") == 2
    assert all(f"| {cell} |" in text for cell in ("↺ REVISE", "↺ no verdict", "✓ APPROVED"))
    lane = text.split("## Timeline\n\n```text\n")[1].split("\n")[2]
    assert re.sub("[^⊘↺✓]", "", lane) == "⊘⊘↺↺✓"
    assert "⊘ not counted: too early, or without evidence" in text, "the legend names it"


def test_the_page_has_a_mark_and_a_badge_for_each(folder: Path) -> None:
    text = report_html(summarise(folder))
    assert re.findall('<g class="mark (\\w+)"', text) == OUTCOMES
    assert re.findall('<span class="badge (\\w+)">', text) == OUTCOMES
    shapes = dict(re.findall('<g class="mark (\\w+)".*?<path d="([^"]+)"', text))
    assert len(set(shapes.values())) == 3
    for kind in VerdictKind:
        assert f".badge.{kind} {{ color: var(--{kind}); }}" in text
        assert f".mark.{kind} circle {{ fill: var(--{kind}); }}" in text


def test_the_facts_count_them_apart(folder: Path) -> None:
    facts = dict(summarise(folder).facts)
    assert facts["Reviews"] == "5: 1 approved, 2 not counted, 2 with changes asked for"


def test_the_dashboard_is_told_them(events: list[Event]) -> None:
    told = run_json(run_from_events(events), "", events)
    verdicts = [item["verdict"] for item in told["handoffs"] if item["verdict"]]
    assert [item["kind"] for item in verdicts] == OUTCOMES
    assert verdicts[0]["label"] == "⊘ APPROVED, not counted"
