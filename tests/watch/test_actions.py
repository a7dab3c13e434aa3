"""What agents did in their turns, in report, dashboard and status: for a tester, how each command ended."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from quintet.actions import ActionKind, TurnActions, action, bounded
from quintet.changed_tests import FileLoss, TestLosses
from quintet.cli.main import cli
from quintet.loop import journal
from quintet.loop.journal import Event
from quintet.roles import PEER_PROGRAMMER, TESTER, Role
from quintet.watch.dashboard.run_json import handoff_json, run_json
from quintet.watch.report.report_html import report_html
from quintet.watch.report.report_markdown import report_markdown
from quintet.watch.runs.changes import Changes, changes_of, save_changes
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.folders import read_run
from quintet.watch.runs.handoffs import VerdictKind
from quintet.watch.runs.summary import Summary, summarise
from tests.watch import events
from tests.watch.events import at, sent, started

RESPONSE = "cat > /project/.tmp/agent-responses/test_result.md <<'END'\nRESULT: PASS\nEND"
DID = bounded(
    [
        action(ActionKind.COMMAND, "sh check.sh | tee <b>log</b>", 0),
        action(ActionKind.COMMAND, "make test\nmake lint", 2),
        action(ActionKind.COMMAND, "./server &", None),
        action(ActionKind.READ, "slug.py"),
        action(ActionKind.CHANGE, "scratch.txt"),
        action(ActionKind.TOOL, "mcp__browser__click"),
        action(ActionKind.COMMAND, RESPONSE, 0),
    ]
)


def write(wd: Path, told: list[Event]) -> Path:
    """The folder of a run in a project."""
    return events.write(wd / ".tmp" / "20260102-030405-abcdef", told)


def replied(seconds: float, role: Role, actions: TurnActions | None, step: str = "") -> Event:
    taken = {"step": step or f"1-1-{role.output}", "role": role.name, "characters": 9, "source": "file"}
    return at(seconds, journal.ReplyTaken.model_validate(taken | {"actions": actions}))


def judged(seconds: float, verdict: str, *, counts: bool = True, reason: str = "the tester's verdict") -> Event:
    return at(seconds, journal.TestJudged(round=1, verdict=verdict, reason=reason, counts=counts))


def summary(wd: Path, *told: Event) -> Summary:
    return summarise(write(wd, [*started(), *told]))


def test_the_report_names_what_the_tester_did_and_marks_a_pass_after_a_failed_command(tmp_path: Path) -> None:
    found = summary(tmp_path, sent(1, TESTER), replied(2, TESTER, DID), judged(3, "PASS"))
    mark = "1 command in this turn ended with another exit code than 0"
    text, page = report_markdown(found), report_html(found)
    for line in (
        "exit code 0: sh check.sh | tee <b>log</b>",
        "exit code 2: make test make lint",
        "exit code not known: ./server &",
        "read: slug.py",
        "changed: scratch.txt",
        "used: mcp__browser__click",
    ):
        assert line in text
    assert "agent-responses" not in text, "writing the response is no part of the test"
    assert "3 commands (1 failed), 1 file read, 1 file changed, 1 other tool" in text
    assert text.count(mark) == page.count(mark) == 2, "with the verdict, and over its evidence"
    assert "sh check.sh | tee &lt;b&gt;log&lt;/b&gt;" in page
    assert "<b>log" not in page


@pytest.mark.parametrize(("verdict", "did"), [("FAIL", DID), ("PASS", bounded(DID.items[:1]))])
def test_other_verdicts_have_no_mark(tmp_path: Path, verdict: str, did: TurnActions) -> None:
    found = summary(tmp_path, sent(1, TESTER), replied(2, TESTER, did), judged(3, verdict))
    assert "another exit code" not in report_markdown(found)


def test_nothing_done_is_not_nothing_known(tmp_path: Path) -> None:
    nothing = summary(tmp_path / "a", sent(1, TESTER), replied(2, TESTER, TurnActions()), judged(3, "PASS"))
    unknown = summary(tmp_path / "b", sent(1, TESTER), replied(2, TESTER, None), judged(3, "PASS"))
    assert "(nothing, by its own record)" in report_markdown(nothing)
    assert "| nothing |" in report_markdown(nothing)
    assert "what the tester did" not in report_markdown(unknown)
    for found, words in ((nothing, "Nothing, by the agent's own record."), (unknown, "Not known: there is no record")):
        assert words in handoff_json(found.folder, found.run, found.run.handoffs[0])["actions"]


def test_a_pass_that_does_not_count_is_no_pass(tmp_path: Path) -> None:
    void = judged(3, "PASS", counts=False, reason="nothing was run; it is asked once more")
    again = at(4, journal.PromptSent(step="1-1-tester-again", role=TESTER.name, round=1, cycle=1, characters=9))
    second = replied(5, TESTER, TurnActions(), "1-1-tester-again")
    found = summary(
        tmp_path, sent(1, TESTER), replied(2, TESTER, TurnActions()), void, again, second, judged(6, "FAIL")
    )
    assert [handoff.verdict and handoff.verdict.kind for handoff in found.run.handoffs] == [
        VerdictKind.VOID,
        VerdictKind.BAD,
    ]
    assert "⊘ PASS, not counted" in report_markdown(found)
    assert line_for(void) == "test of round 1: PASS, not counted (nothing was run; it is asked once more)"


def test_status_tells_of_every_turn(tmp_path: Path) -> None:
    folder = write(tmp_path, [*started(), sent(1, PEER_PROGRAMMER), replied(2, PEER_PROGRAMMER, DID), sent(3, TESTER)])
    done = CliRunner().invoke(cli, ["status", "--json", "--wd", str(folder.parents[1])])
    assert done.exit_code == 0, done.output
    first, second = json.loads(done.output)["handoffs"]
    assert first["actions"]["items"][1] == {"kind": "command", "text": "make test\nmake lint", "exit_code": 2}
    assert first["did"].startswith("3 commands (1 failed)")
    assert second["actions"] is None


def test_what_the_tests_have_lost_is_a_fact_of_report_and_dashboard(tmp_path: Path) -> None:
    lost = journal.TestsLost(round=1, text="1 test removed", files=("a.py: 1 test removed (test_x)",))
    folder = write(tmp_path, [*started(), at(1, lost), events.finished(2, "PASS")])
    run = read_run(folder)
    assert run_json(run, "", [])["lost_tests"] == ["1 test removed", "a.py: 1 test removed (test_x)"]
    assert line_for(lost) == "the tests since the start commit: 1 test removed"
    assert not run.warnings
    losses = TestLosses((FileLoss("tests/test_a.py", True, ("test_<b>",), 2, 1),))
    save_changes(folder, Changes((), 0, "", losses))
    assert changes_of(folder, run).lost_tests == losses
    save_changes(folder, Changes((), 0, "", TestLosses((FileLoss("x", assertions=10**30),))))
    assert changes_of(folder, run).lost_tests == TestLosses(), "an agent may have written it"


def test_the_end_of_a_run_counts_what_the_tests_have_lost(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=T", "-c", "user.email=t@localhost", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    (tmp_path / "test_a.py").write_text("def test_one():\n    assert 1\n\n\ndef test_two():\n    assert 2\n")
    git("add", "--all")
    git("commit", "--quiet", "-m", "Begin")
    first, *more = started()
    first = first.model_copy(update={"start_commit": git("rev-parse", "HEAD"), "wd": str(tmp_path)})
    folder = write(tmp_path, [first, *more])
    (tmp_path / "test_a.py").write_text("def test_one():\n    assert 1\n")
    found = summarise(folder)
    words = "1 test removed, 1 assertion removed"
    assert ("Tests", f"{words} since the start commit") in found.facts
    for text in (report_markdown(found), report_html(found)):
        assert "What the tests have lost:" in text
        assert "1 test removed (test" in text
