"""A finished run of the scripted agents: its report's numbers, recomputed from the journal and the archive."""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

import pytest

from quintet.roles import ROLES
from quintet.watch.figures import count, duration
from quintet.watch.runs import read_run, run_folders
from quintet.watch.summary import summarise
from tests.watch.scripted import Scripted, scripted, story, turns

PRICES = {"scripted": {"input": 2.0, "cached": 0.5, "output": 10.0}}


@pytest.fixture(scope="module")
def project() -> Iterator[Scripted]:
    script = story()
    script["programmer"][0].insert(0, {"write": {"path": "greet.py", "text": "print('hello')\n"}})
    with scripted(script) as project:
        code, output = project.call("run", PRICES=json.dumps(PRICES))
        assert code == 0, output
        yield project


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
    assert facts["Reviews"] == f"{len(reviews)}, {approved} approved"

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
    assert facts["Tokens"] == f"{count(total)} ({count(cached)} of them cached), cost {cost:.4f} by your prices"
    for role in ROLES:
        name = role.name.replace("_", r"\_")
        row = re.search(rf"^\| {re.escape(name)} \| (.*) \|$", text, re.MULTILINE)
        assert row, role
        assert f"{roles[role.name]:,}" in row[1]

    state = json.loads((project.wd / ".tmp" / "quintet-state.json").read_text())
    assert state["tokens_used"] == total


def test_the_bytes_that_condensation_saved(project: Scripted) -> None:
    summary = summarise(project.folder)
    sizes = [path.stat().st_size for path in (project.folder / "prompts").glob("*.md")]
    assert summary.prompts == sum(sizes)
    # the tester's two prompts lack the programmer's limitations, which the reply has
    limitations = "## Known limitations\nnone that anybody has found so far\n"
    assert summary.saved >= 2 * len(limitations)
    prompt = (project.folder / "prompts" / "007-tester.md").read_text()
    assert limitations.splitlines()[1] not in prompt


def test_the_files_and_the_line_that_takes_them_back(project: Scripted) -> None:
    text = (project.folder / "report.md").read_text(encoding="utf-8")
    assert "| greet.py | new |" in text
    (line,) = re.findall(r"^git stash push .*$", text, re.MULTILINE)
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
        rf"^{folder.name}  PASS in round 2  \d+ s  {re.escape(count(tokens))} tokens  Add a greeting", output
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
        code, output = project.call("run", MAX_TOKENS="1500")
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
        assert json.loads(output.splitlines()[-1]) == project.journal[-1]
        assert len([event for event in project.journal if event["event"] == "prompt_sent"]) == 10


def test_a_turn_that_needed_a_reminder_counts_whole() -> None:
    script = story()
    script["tester"] = [[{"reply": "RESULT: PASS", "manner": "say_only"}], *turns("RESULT: PASS\nEVIDENCE:\n- ok\n")]
    with scripted(script) as project:
        code, output = project.call("run", IDLE_GRACE_SECONDS="0.5", START_AGENT="tester")
        assert code == 0, output
        (reply,) = [event for event in project.journal if event["event"] == "reply_taken"]
        assert [event["event"] for event in project.journal].count("reminded") == 1
        # the second turn has read the first again, so both together have read more than twice the prompt
        assert reply["tokens"]["input"] > 2 * 900
        assert reply["tokens"]["cached"] > 0
