"""A line once in a while while an agent is at work; the clock is passed in."""

from pathlib import Path

import pytest

from quintet.loop import journal
from quintet.roles import ANALYST, PEER_ANALYST, TESTER
from quintet.watch.console.console import Lines, open_console
from quintet.watch.console.progress import Progress
from quintet.watch.runs.terminal_status import TurnActivity
from tests.stub.replies import FAIL
from tests.watch.events import START, at, finished, sent, started, taken
from tests.watch.scripted import DEADLINE, scripted, turns

BEGIN = START.timestamp()
SCREEN = "\x1b[1m• Explored\x1b[0m\n  └ Read main.py\n\n• Ran pytest -q\n  └ 3 passed\n\n› Ask for something"


def progress(every: float = 60.0, seen: TurnActivity | None = None) -> Progress:
    made = Progress(every, lambda _run, _role: seen or TurnActivity())
    for event in [*started(), sent(10, ANALYST)]:
        made.add(event)
    return made


def test_a_line_each_minute_and_none_between() -> None:
    made = progress()
    told = {second: line for second in range(10, 200) if (line := made.due_line(BEGIN + second))}
    assert list(told) == [70, 130, 190]
    assert told[70] == "analyst has been at work for 1 min 00 s"
    assert told[190].endswith("for 3 min 00 s")


def test_it_says_the_tokens_and_the_last_thing_that_was_done() -> None:
    made = progress(seen=TurnActivity(4_200, SCREEN))
    line = made.due_line(BEGIN + 70)
    assert line == "analyst has been at work for 1 min 00 s; 4.2k tokens so far in this run; last: Ran pytest -q"
    made.add(taken(80, ANALYST, tokens=990))
    made.add(sent(80, PEER_ANALYST))
    line = made.due_line(BEGIN + 140)
    assert "peer analyst" in line
    assert "5.2k tokens" in line, "those of earlier turns are counted too"


def test_an_event_puts_it_off() -> None:
    made = progress()
    made.add(at(60, journal.Noted(text="something")))
    assert not made.due_line(BEGIN + 100)
    assert made.due_line(BEGIN + 120)


@pytest.mark.parametrize("every", [0.0, 60.0])
def test_nothing_where_it_is_off_or_nobody_is_at_work(every: float) -> None:
    made = progress(every)
    if every:
        made.add(finished(20, "PASS"))
    assert not made.due_line(BEGIN + 10_000)


def test_a_long_step_is_cut_and_a_screen_without_one_says_nothing() -> None:
    assert TurnActivity(0, "› Ask for something\n  gpt · 80% left").last_step == ""
    assert len(TurnActivity(0, "● Bash(" + "x" * 500).last_step) == 60


def test_lines_print_it_with_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(True, progress())
    lines.tick(BEGIN + 69)
    assert capsys.readouterr().out == ""
    lines.tick(BEGIN + 70)
    assert "analyst has been at work for 1 min 00 s" in capsys.readouterr().out


def test_the_journal_for_programs_has_no_such_lines(tmp_path: Path) -> None:
    with open_console(tmp_path, as_json=True, progress_seconds=0.01) as show:
        assert not hasattr(show, "tick")


def test_a_run_and_its_watcher_say_who_is_at_work_as_often_as_their_settings_say() -> None:
    with scripted({TESTER.name: turns(FAIL, think=1.5)}) as project:
        settings = {"START_AGENT": TESTER.name, "MAX_ROUNDS": "1", "PROGRESS_SECONDS": "0.3"}
        run = project.start("run", "--plain", **settings)
        project.until_there("*/prompts/*-tester.md")
        code, watched = project.call("watch", "--plain", PROGRESS_SECONDS="0.3")
        assert code == 0, watched
        output, _ = run.communicate(timeout=DEADLINE)
    assert run.returncode == 1, output
    assert "tester has been at work for 1 s" in output
    assert "tester has been at work for 1 s" in watched
