"""What people see of the checks of a run, and of what its PASS rests on."""

import json
from pathlib import Path

from quintet.loop import journal
from quintet.loop.journal import Event
from quintet.roles import PROGRAMMER, TESTER
from quintet.watch.dashboard.run_json import handoff_json, run_json
from quintet.watch.report.write_report import write_report
from quintet.watch.runs.advice import Code, advise, step_text
from quintet.watch.runs.condensation import condensed_texts
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.folders import read_run
from quintet.watch.runs.model import run_from_events
from tests.watch.events import at, finished, sent, started, taken, verdict_of, write
from tests.watch.scripted import scripted, story

TESTED = [*started(), sent(10, TESTER), taken(30, TESTER, file="006-tester.md"), verdict_of(30, "PASS")]


def verified(title: str, exit_code: int = 0, file: str = "", number: int = 1) -> Event:
    return at(31, journal.Verified(round=number, command=title, exit_code=exit_code, file=file))


def checked(when: str, exit_code: int, file: str = "", number: int = 1) -> Event:
    return at(31, journal.Checked(round=number, when=when, command="verify block 1", exit_code=exit_code, file=file))


def ended(**checks: int) -> Event:
    return at(40, journal.RunFinished(status="PASS", round=1, checks=checks))


def test_a_pass_rests_on_the_checks_that_have_confirmed_it() -> None:
    run = run_from_events([*TESTED, verified("make", 0), ended(make=0)])
    assert (run.rests_on, run.confirmed_by) == ("verified", {"make": 0})
    assert run_json(run, "", [])["rests_on"] == "verified"
    lost = run_from_events([*TESTED, ended(make=0)])
    assert lost.rests_on == "verified", "an event that a kill has lost changes nothing"


def test_a_pass_without_a_check_rests_on_the_tester() -> None:
    run = run_from_events([*TESTED, checked("start", 1), checked("before_test", 0), ended()])
    assert (run.rests_on, run.confirmed_by) == ("tester", {})
    assert run_from_events([*TESTED, verified("make", 2), finished(40, "FAIL")]).rests_on == ""
    assert run_from_events(TESTED).rests_on == ""


def test_a_journal_that_does_not_say_it_tells_of_the_last_round() -> None:
    events = [*TESTED, verified("old", 1), verified("make", 0, number=2), verified("test", 0, number=2)]
    run = run_from_events([*events, at(40, journal.RunFinished(status="PASS", round=2))])
    assert run.confirmed_by == {"make": 0, "test": 0}


def test_the_last_line_says_it() -> None:
    both = {"verify block 1": 0, "make test": 0}
    words = "PASS in round 1, verified by verify block 1 (exit code 0), make test (exit code 0)"
    assert line_for(ended(**both)) == words
    assert line_for(ended()) == "PASS in round 1, on the tester's word alone"
    assert line_for(at(1, journal.RunFinished(status="FAIL", round=8, checks={}))) == "FAIL in round 8"
    assert line_for(finished(1, "PASS")) == "PASS in round 1"


def test_a_check_before_the_work_or_the_test_is_no_verdict_on_a_test() -> None:
    run = run_from_events([*TESTED, checked("start", 1), checked("before_test", 2)])
    verdict = run.handoffs[0].verdict
    assert verdict is not None
    assert verdict.word == "PASS"
    assert [(check.when, check.exit_code, check.failed_round) for check in run.checks] == [
        ("start", 1, False),
        ("before_test", 2, True),
    ]


def test_after_a_fail_before_the_test_the_checks_output_is_named(tmp_path: Path) -> None:
    """Also in the report, and as the source of what the programmer was told."""
    carried = (journal.Carried(what=journal.TEST_EVIDENCE, whole=100, sent=10),)
    prompt = journal.PromptSent(
        step="2-1-programmer", role=PROGRAMMER.name, round=2, cycle=1, characters=9, file="p.md", carried=carried
    )
    failed = checked("before_test", 5, "003-check.md")
    events = [*started(), sent(1, PROGRAMMER), taken(2, PROGRAMMER), failed]
    last = run_from_events([*events, finished(40, "FAIL")])
    assert step_text(advise(last)[0]).startswith("A check failed before the tester was asked.")
    assert ".tmp/20260102-030405-abcdef/003-check.md" in [part for part in advise(last)[0] if isinstance(part, Code)]
    folder = write(tmp_path / ".tmp" / "r", [*events, at(32, prompt)])
    (folder / "003-check.md").write_text("$ make\nwhat it printed\n")
    (folder / "p.md").write_text("$ make\n")
    run = read_run(folder)
    (part,) = condensed_texts(folder, run, run.handoffs[-1])
    assert part.left_out == ("what it printed",)
    text, page = (path.read_text(encoding="utf-8") for path in write_report(folder))
    assert "### Round 1: ✗ FAIL, the output of verify block 1, before the test" in text
    assert "what it printed" in page


def test_every_check_of_a_test_is_in_the_report_and_the_dashboard(tmp_path: Path) -> None:
    start = checked("start", 0, "000-check-1.md")
    checks = [verified("verify block 1", 0, "007-verify.md"), verified("make test", 0, "008-verify.md")]
    folder = write(tmp_path / ".tmp" / "r", [*TESTED[:6], start, *TESTED[6:], *checks, ended(a=0, b=0)])
    for name in ("000-check-1", "007-verify", "008-verify"):
        (folder / f"{name}.md").write_text(f"words of {name}\n")
    text, _ = (path.read_text(encoding="utf-8") for path in write_report(folder))
    assert "| The PASS | verified by a (exit code 0), b (exit code 0) |" in text
    assert "passes already, the output of verify block 1, before anything was done" in text
    for name in ("000-check-1", "007-verify", "008-verify"):
        assert f"words of {name}" in text
    run = read_run(folder)
    output = handoff_json(folder, run, run.handoffs[-1])["output"]
    assert output == "words of 007-verify\n\nwords of 008-verify\n"
    assert [(row["check"], row["when"], row["exit_code"]) for row in run_json(run, "", [])["checks"]] == [
        ("verify block 1", "start", 0),
        ("verify block 1", "after_pass", 0),
        ("make test", "after_pass", 0),
    ]


def test_status_says_it_as_json() -> None:
    with scripted(story()) as project:
        code, output = project.call("run", "--plain", VERIFY_CMD="test -d .tmp")
        assert code == 0, output
        assert "verified by test -d .tmp (exit code 0)" in output
        told = json.loads(project.call("status", "--json")[1])
    assert (told["rests_on"], told["confirmed_by"]) == ("verified", {"test -d .tmp": 0})
    assert [(check["when"], check["exit_code"]) for check in told["checks"]] == [("start", 0), ("after_pass", 0)]
