"""What a role changed and may not change, as people read it: in lines, the live view, reports and the dashboard."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from quintet.loop.journal import Event, GuardedChange, GuardViolation
from quintet.loop.record.journal_lines import read_line
from quintet.roles import TESTER
from quintet.watch.console.live_view import LiveFrame
from quintet.watch.dashboard.run_json import handoff_json, run_json
from quintet.watch.report.report_html import report_html
from quintet.watch.report.report_markdown import report_markdown
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.folders import read_run
from quintet.watch.runs.model import run_from_events
from quintet.watch.runs.summary import summarise
from tests.watch.events import at, finished, sent, started, taken, verdict_of, write

EDIT = GuardedChange(path="src/<b>.c", change="changed")
NEW = GuardedChange(path="out.txt", change="created")
UNDONE = GuardViolation(
    step="1-1-tester", role="tester", paths=(EDIT, NEW), undone=True, serious=True, file="005-tester-undone.patch"
)


def events(violation: GuardViolation = UNDONE) -> list[Event]:
    told = [at(2, violation), verdict_of(2, "FAIL"), finished(3, "FAIL")]
    return [*started(), sent(1, TESTER), taken(2, TESTER), *told]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / ".tmp" / "20260102-030405-abcdef", events())


def test_a_line_says_who_did_what_and_where_it_is_kept() -> None:
    line = line_for(UNDONE)
    assert line == (
        "warning: tester changed what it may not change (changed src/<b>.c, created out.txt): "
        "undone, kept as 005-tester-undone.patch"
    )
    assert line_for(UNDONE.model_copy(update={"undone": False, "file": ""})).endswith(": not undone")
    many = UNDONE.model_copy(update={"paths": (EDIT,) * 9, "left_out": 3, "failed": ("HEAD: busy",)})
    assert "and 7 more" in line_for(many)
    assert "could not be undone: HEAD: busy" in line_for(many)
    outside = GuardViolation(step="s", role="peer_programmer", outside=(EDIT,))
    assert (
        line_for(outside)
        == "warning: peer programmer changed what is not guarded, or somebody did meanwhile: changed src/<b>.c"
    )


def test_it_is_a_warning_of_the_run_and_belongs_to_its_turn() -> None:
    run = run_from_events(events())
    assert [warning.kind for warning in run.warnings] == ["guard violation"]
    assert run.handoffs[0].violation is not None
    assert run.handoffs[0].violation.paths == (EDIT, NEW)


def test_the_live_view_shows_it() -> None:
    frame = LiveFrame()
    for event in events()[:-1]:
        frame.add(event)
    console = Console(file=io.StringIO(), width=80, height=24)
    console.print(frame.draw(80, 24))
    assert isinstance(console.file, io.StringIO)
    assert "tester changed what it may not change" in console.file.getvalue()


def test_both_reports_have_a_table_of_it(folder: Path) -> None:
    text = report_markdown(summarise(folder))
    assert "## Changes that a role may not make" in text
    assert "changed src/&lt;b>.c, created out.txt" in text
    assert "`005-tester-undone.patch`" in text
    page = str(report_html(summarise(folder)))
    assert "Changes that a role may not make" in page
    assert "changed src/&lt;b&gt;.c" in page
    assert "1 guard violation" in text


def test_a_run_without_any_has_no_such_table(tmp_path: Path) -> None:
    honest = [*started(), sent(1, TESTER), taken(2, TESTER), verdict_of(2, "PASS"), finished(3, "PASS")]
    text = report_markdown(summarise(write(tmp_path / ".tmp" / "r", honest)))
    assert "Changes that a role may not make" not in text
    assert "| Warnings | none |" in text


def test_the_dashboard_gets_it_with_the_turn(folder: Path) -> None:
    run = read_run(folder)
    (turn,) = run_json(run, "", [])["handoffs"]
    assert turn["violation"].startswith("changed what it may not change")
    did = handoff_json(folder, run, run.handoffs[0])["actions"]
    assert "was undone after the turn and is kept as 005-tester-undone.patch:\n- changed src/<b>.c\n- created" in did


def test_the_journal_keeps_all_of_it() -> None:
    assert read_line(at(1, UNDONE).model_dump_json().encode()) == at(1, UNDONE)
