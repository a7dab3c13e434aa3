"""A finished run of the scripted agents: its report's numbers, recomputed from the journal and the archive."""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pytest

from quintet.config import Settings
from quintet.loop.decide.condense import (
    condense_for_programmer,
    condense_for_tester,
    extract_review_notes,
    extract_test_evidence,
)
from quintet.loop.journal import (
    ANALYST_HANDOFF,
    EXPLORE,
    PREVIOUS_CHANGES,
    PROGRAMMER_HANDOFF,
    REVIEW_NOTES,
    TEST_EVIDENCE,
)
from quintet.roles import ROLES, TESTER
from quintet.watch.runs.condensation import condensed_texts
from quintet.watch.runs.folders import read_run, run_folders
from quintet.watch.runs.formatting import duration, short_number
from quintet.watch.runs.summary import summarise
from tests.watch.scripted import Scripted, scripted, story, turns

PRICES = {"scripted": {"input": 2.0, "cached": 0.5, "output": 10.0}}


@dataclass
class FinishedRun(Scripted):
    """A project in which a run has passed, and what the run has printed."""

    printed: str = ""


@pytest.fixture(scope="module")
def project() -> Iterator[FinishedRun]:
    script = story()
    script["programmer"][0].insert(0, {"write": {"path": "greet.py", "text": "print('hello')\n"}})
    with scripted(script) as project:
        code, output = project.call("run", "--plain", PRICES=json.dumps(PRICES))
        assert code == 0, output
        yield FinishedRun(project.root, printed=output)


def test_every_number_of_the_report(project: Scripted) -> None:
    events = project.journal
    replies = [event for event in events if event["event"] == "reply_taken"]
    prompts = [event for event in events if event["event"] == "prompt_sent"]
    reviews = [event for event in events if event["event"] == "review_judged"]
    text = (project.folder / "report.md").read_text(encoding="utf-8")
    facts = dict(re.findall(r"^\| ([\w ]+) \| (.*) \|$", text, re.MULTILINE))

    times = [datetime.fromisoformat(event["at"]) for event in events]
    assert facts["Time at work"] == duration((times[-1] - times[0]).total_seconds())
    assert facts["Turns"] == str(len(replies)) == "10"
    assert facts["Rounds"] == str(len({event["round"] for event in prompts})) == "2"
    approved = sum(event["approved"] for event in reviews)
    asked = sum(event["verdict"] == "REVISE" for event in reviews)
    assert facts["Reviews"] == f"{len(reviews)}: {approved} approved, {asked} with changes asked for"

    roles: defaultdict[str, int] = defaultdict(int)
    for reply in replies:
        roles[reply["role"]] += reply["tokens"]["input"] + reply["tokens"]["output"]
    total = sum(roles.values())
    cached = sum(reply["tokens"]["cached"] for reply in replies)
    cost = sum(reply["cost"] for reply in replies)
    by_hand = sum(
        (reply["tokens"]["input"] - reply["tokens"]["cached"]) * 2.0
        + reply["tokens"]["cached"] * 0.5
        + reply["tokens"]["output"] * 10.0
        for reply in replies
    )
    assert cost == pytest.approx(by_hand / 1e6, abs=1e-5)
    assert facts["Tokens"] == f"{short_number(total)} ({short_number(cached)} of them cached), cost {cost:.4f}"
    for role in ROLES:
        name = role.name.replace("_", " ")
        row = re.search(rf"^\| {re.escape(name)} \| (.*) \|$", text, re.MULTILINE)
        assert row, role
        assert f"{roles[role.name]:,}" in row[1]

    state = json.loads((project.wd / ".tmp" / "quintet-state.json").read_text())
    assert state["tokens_used"] == total


def test_a_run_that_passes_ends_with_the_screen_of_a_pass(project: FinishedRun) -> None:
    assert "1 file changed, 1 line added, 0 removed" in project.printed
    assert "The PASS rests on the tester's word alone." in project.printed


def test_a_run_that_nobody_touches_tells_of_nobody(project: Scripted) -> None:
    assert "hand_typed" not in {event["event"] for event in project.journal}


def test_the_bytes_that_condensation_saved(project: Scripted) -> None:
    """What was written down when each prompt was built is what the archive shows afterwards, byte for byte."""
    summary = summarise(project.folder)
    sizes = [path.stat().st_size for path in (project.folder / "prompts").glob("*.md")]
    assert summary.prompt_bytes == sum(sizes)
    prompts = [event for event in project.journal if event["event"] == "prompt_sent"]
    carried = [part for event in prompts for part in event["carried"]]
    assert summary.left_out_bytes == sum(part["whole"] - part["sent"] for part in carried)
    text = (project.folder / "report.md").read_text(encoding="utf-8")
    assert (
        f"| Left out by condensation | {summary.left_out_bytes:,} of {summary.left_out_bytes + sum(sizes):,} bytes |"
        in text
    )

    replies = {event["step"]: event["file"] for event in project.journal if event["event"] == "reply_taken"}
    expected = {  # by the prompt: of what, the whole text, and the text that was sent
        "1-1-tester": [(PROGRAMMER_HANDOFF, "1-1-programmer", condense_for_tester)],
        "1-2-analyst": [(REVIEW_NOTES, "1-1-analyst_review", extract_review_notes)],
        "1-1-programmer": [(ANALYST_HANDOFF, "1-2-analyst", condense_for_programmer)],
        "2-1-programmer": [
            (TEST_EVIDENCE, "1-1-tester", extract_test_evidence),
            (PREVIOUS_CHANGES, "1-1-programmer", condense_for_tester),
        ],
        "2-1-programmer_review": [(TEST_EVIDENCE, "1-1-tester", extract_test_evidence)],
    }
    by_step = {event["step"]: event for event in prompts}
    for step, parts in expected.items():
        told = {part["what"]: (part["whole"], part["sent"]) for part in by_step[step]["carried"]}
        prompt = (project.folder / by_step[step]["file"]).read_text(encoding="utf-8")
        for what, source, shorten in parts:
            whole = (project.folder / replies[source]).read_text(encoding="utf-8")
            sent = shorten(whole, Settings(wd=project.wd)).strip("\n")
            assert sent in prompt
            assert told[what] == (len(whole.encode()), len(sent.encode())), (step, what)
        assert told.keys() == {what for what, _, _ in parts} | ({EXPLORE} if "tester" not in step else set())
    # the explore summary goes out in full once for each terminal, and afterwards as a reference
    summaries = [part for event in prompts for part in event["carried"] if part["what"] == EXPLORE]
    assert sum(part["sent"] == part["whole"] for part in summaries) == 4


def test_what_was_left_out_can_be_read(project: Scripted) -> None:
    run = read_run(project.folder)
    tested = next(handoff for handoff in run.handoffs if handoff.role is TESTER)
    (part,) = condensed_texts(project.folder, run, tested)
    assert part.left_out[-2:] == ("## Known limitations", "none that anybody has found so far")
    assert part.left_out_bytes == sum(item.whole - item.sent for item in tested.carried)


def test_the_files_and_the_line_that_takes_them_back(project: Scripted) -> None:
    text = (project.folder / "report.md").read_text(encoding="utf-8")
    assert "| `greet.py` | new |" in text
    (line,) = re.findall(r"^git -C .* stash push .*$", text, re.MULTILINE)
    assert (project.wd / "greet.py").exists()
    project.git(*shlex.split(line)[1:])
    assert not (project.wd / "greet.py").exists()
    assert (project.wd / ".tmp").is_dir()
    project.git("stash", "pop")
    # the report of an old run does not change with the tree
    (project.wd / "later.py").write_text("")
    assert project.call("report")[0] == 0
    assert "later.py" not in (project.folder / "report.md").read_text(encoding="utf-8")


def test_the_list_of_runs(project: Scripted) -> None:
    code, output = project.call("runs")
    assert code == 0
    (folder,) = run_folders(project.wd)
    tokens = sum(handoff.tokens.total for handoff in read_run(folder).handoffs if handoff.tokens)
    assert re.search(
        rf"^{folder.name}  PASS in round 2  \d+ s  {re.escape(short_number(tokens))} tokens  Add a greeting", output
    )


def test_the_status_of_a_finished_run(project: Scripted) -> None:
    code, output = project.call("status")
    assert code == 0
    assert "PASS in round 2" in output
    told = json.loads(project.call("status", "--json")[1])
    assert told["status"] == "PASS"
    assert len(told["handoffs"]) == 10
    code, output = project.call("watch", "--json")
    assert code == 0
    assert [json.loads(line)["event"] for line in output.splitlines()] == [event["event"] for event in project.journal]


def test_a_limit_of_tokens_stops_a_run_that_goes_on_with_a_higher_one() -> None:
    with scripted(story()) as project:
        code, output = project.call("run", START_AGENT="programmer", MAX_TOKENS="1500")
        assert code == 3, output
        used = [reply["tokens"] for reply in project.journal if reply["event"] == "reply_taken"]
        total = sum(tokens["input"] + tokens["output"] for tokens in used)
        assert f"{total:,} tokens are used and MAX_TOKENS is 1,500" in output
        assert total - used[-1]["input"] - used[-1]["output"] < 1500 <= total
        assert project.journal[-1]["event"] == "run_stopped"
        assert (project.folder / "report.html").exists()
        assert project.call("run", MAX_TOKENS="1500")[0] == 3
        code, output = project.call("run", "--json", MAX_TOKENS="0")
        assert code == 0, output
        assert json.loads(output.splitlines()[-1]) == project.journal[-1], "no screen of a PASS follows"
        assert len([event for event in project.journal if event["event"] == "prompt_sent"]) == 6


def test_a_turn_that_needed_a_reminder_counts_whole() -> None:
    script = story()
    script["tester"] = [[{"reply": "RESULT: PASS", "manner": "say_only"}], *turns("RESULT: PASS\nEVIDENCE:\n- ok\n")]
    with scripted(script) as project:
        code, output = project.call("run", IDLE_GRACE_SECONDS="0.2", START_AGENT="tester")
        assert code == 0, output
        (reply,) = [event for event in project.journal if event["event"] == "reply_taken"]
        assert [event["event"] for event in project.journal].count("reminded") == 1
        # the second turn has read the first again, so both together have read more than twice the prompt
        assert reply["tokens"]["input"] > 2 * 900
        assert reply["tokens"]["cached"] > 0


def test_a_tester_that_is_asked_again_and_says_nothing_has_its_turn_counted() -> None:
    silent = [{"reply": "RESULT: PASS", "manner": "say_only"}]
    with scripted({TESTER.name: [*turns("no verdict"), silent]}) as project:
        settings = {"START_AGENT": "tester", "MAX_ROUNDS": "1", "IDLE_GRACE_SECONDS": "0.2", "MAX_FILE_REMINDERS": "0"}
        code, output = project.call("run", "--plain", **settings)
        assert code == 1, output
        assert "The PASS rests on" not in output
        told = [event for event in project.journal if event["event"] in ("reply_taken", "reply_missed")]
        assert [event["event"] for event in told] == ["reply_taken", "reply_missed"]
        total = sum(event["tokens"]["input"] + event["tokens"]["output"] for event in told)
        state = json.loads((project.wd / ".tmp" / "quintet-state.json").read_text())
        assert state["tokens_used"] == total
        run = read_run(project.folder)
        assert [handoff.missed for handoff in run.handoffs] == [False, True]
        assert all(handoff.taken for handoff in run.handoffs)


def test_a_run_that_is_killed_is_shown_as_interrupted_and_goes_on() -> None:
    with scripted({"tester": [[{"hang": True}]]}) as project:
        process = project.start("run", START_AGENT="tester")
        project.until_there("*/prompts/001-tester.md")
        assert json.loads(project.call("status", "--json")[1])["status"] == "RUNNING"
        process.kill()
        process.wait()
        assert "Interrupted in round 1" in project.call("runs")[1]
        told = json.loads(project.call("status", "--json")[1])
        assert (told["status"], told["at_work"]) == ("GONE", False)
        project.call("stop", "--all")
        project.script({"tester": turns("RESULT: PASS\nEVIDENCE:\n- ok\n")})
        code, output = project.call("run")
        assert code == 0, output
        assert "PASS in round 1" in project.call("runs")[1]
