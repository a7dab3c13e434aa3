"""Whole runs with scripted agents on real tmux, in which agents, terminals and turns are lost: they end in PASS."""

import signal
import subprocess
from typing import Any

from quintet.roles import ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER
from tests.stub.project import until
from tests.stub.replies import ANALYST_SUMMARY, FAIL, PASS, PROGRAMMER_APPROVED
from tests.watch.scripted import LONG_SUMMARY, Scripted, scripted, story, turns


def events(project: Scripted, kind: str) -> list[dict[str, Any]]:
    return [event for event in project.journal if event["event"] == kind]


def lines_of_journal(project: Scripted) -> str:
    found = sorted(project.wd.glob(".tmp/*/journal.jsonl"))
    return found[-1].read_text(encoding="utf-8") if found else ""


def nothing_is_left(project: Scripted) -> None:
    _, said = project.call("stop", "--all")
    assert "Ended" not in said, said
    state, records = project.root / "x", project.root / "x/quintet/records"
    left = [path for path in state.rglob("*") if not path.is_dir() and records not in path.parents]
    assert left == [], left


def test_agents_that_crash_and_turns_that_fail() -> None:
    """A crash at the first prompt and one later, a failing turn, a limit of a second: nobody has to do anything."""
    roles = story() | {
        ANALYST.name: [[{"crash": True}], *turns(ANALYST_SUMMARY)],
        PROGRAMMER.name: [
            [{"fail": "usage_limit", "seconds": 1}],
            *turns(LONG_SUMMARY),
            [{"think": 0.1}, {"crash": True}],
            *turns(LONG_SUMMARY),
        ],
        PEER_PROGRAMMER.name: [[{"fail": "server_error"}], *turns(PROGRAMMER_APPROVED)],
        TESTER.name: turns(FAIL, PASS),
    }
    with scripted(roles) as project:
        code, said = project.call("run", "--plain", CLEANUP_ON_EXIT="1")
        assert code == 0, said
        lost = events(project, "terminal_lost")
        assert [(event["role"], event["reason"]) for event in lost] == [
            ("analyst", "its program was ended by signal 9"),
            ("programmer", "its program was ended by signal 9"),
        ]
        resumed = [event["continues"] for event in events(project, "terminal_created") if event["continues"]]
        assert resumed == [event["terminal"] for event in lost], "their conversations go on"
        assert [event["kind"] for event in events(project, "turn_failed")] == ["server_error"]
        assert [event["role"] for event in events(project, "limit_reached")] == ["programmer"]
        assert events(project, "reminded") == []
        sent = [event["step"] for event in events(project, "prompt_sent")]
        twice = {step for step in sent if sent.count(step) > 1}
        assert twice == {"1-1-analyst", "1-1-programmer", "1-1-programmer_review", "2-1-programmer"}
        again = [event["file"] for event in events(project, "prompt_sent") if event["step"] == "2-1-programmer"]
        assert "Add a greeting." in (project.folder / again[-1]).read_text(encoding="utf-8"), "a fresh agent needs all"
        nothing_is_left(project)


def kill_tmux(project: Scripted) -> None:
    (session,) = project.server["sessions"]
    socket = project.root / "x" / "quintet" / "s" / session
    subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=True, capture_output=True, timeout=30)


def test_tmux_is_killed_in_the_middle_of_a_turn() -> None:
    with scripted(story(think=0.3)) as project:
        run = project.start("run", "--plain", CLEANUP_ON_EXIT="1")
        until(lambda: '"role": "programmer", "round": 1' in lines_of_journal(project), "the programmer's prompt")
        kill_tmux(project)
        output, _ = run.communicate(timeout=90)
        assert run.returncode == 0, output
        assert len(events(project, "terminal_lost")) == 5
        replies = [event["step"] for event in events(project, "reply_taken")]
        assert len(replies) == len(set(replies)), "no step is done twice"
        nothing_is_left(project)


def test_an_agent_that_always_crashes_ends_the_run_with_a_clear_word_and_not_for_ever() -> None:
    with scripted(story() | {ANALYST.name: [[{"crash": True}]]}) as project:
        code, said = project.call("run", "--plain")
        assert code == 1
        assert "so were the 2 that replaced it" in said
        assert len(events(project, "terminal_lost")) == 2
        project.script(story())
        code, said = project.call("run", "--plain", CLEANUP_ON_EXIT="1")
        assert code == 0, said
        nothing_is_left(project)


def test_recovery_can_be_turned_off() -> None:
    with scripted(story() | {ANALYST.name: [[{"crash": True}], *turns(ANALYST_SUMMARY)]}) as project:
        code, said = project.call("run", "--plain", RECOVER_TERMINALS="0")
        assert code == 1
        assert "the agent has failed or is gone (its program was ended by signal 9)" in said
        assert events(project, "terminal_lost") == []


def test_interrupted_while_it_waits_for_a_limit_the_run_goes_on_with_the_same_step() -> None:
    roles = story() | {ANALYST.name: [[{"fail": "usage_limit", "seconds": 3600}], *turns(ANALYST_SUMMARY)]}
    with scripted(roles) as project:
        run = project.start("run", "--plain")
        until(lambda: '"limit_reached"' in lines_of_journal(project), "the limit")
        run.send_signal(signal.SIGINT)
        output, _ = run.communicate(timeout=90)
        assert run.returncode == 130, output
        code, said = project.call("run", "--plain", MAX_LIMIT_WAIT="60")
        assert code == 1
        assert "MAX_LIMIT_WAIT (60 s)" in said
        assert [event["step"] for event in events(project, "prompt_sent")] == ["1-1-analyst"], "and asks nothing twice"


def test_without_tmux_a_run_says_so_before_it_begins() -> None:
    with scripted(story()) as project:
        code, said = project.call("run", "--plain", PATH=str(project.root / "nothing"))
        assert code == 1
        assert "stopped: tmux is not installed (Debian: apt-get install tmux; macOS: brew install tmux)" in said
        assert "terminal server" not in said
