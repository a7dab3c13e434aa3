"""The live view: right in every window, and nothing of an agent's that steers the terminal."""

import io
import os
import pty
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from quintet.loop import journal
from quintet.roles import ANALYST
from quintet.watch.console.live_view import LiveFrame
from quintet.watch.runs.formatting import local_date_time
from quintet.watch.runs.model import GONE
from tests.stub.preloaded import run
from tests.watch.events import START, at, failed_run, sent, started, write


def drawn(picture: LiveFrame, width: int, height: int, now: float = 60.0) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False, color_system=None)
    console.print(picture.draw(width, height, START.timestamp() + now))
    return out.getvalue().rstrip("\n").split("\n")


def picture_of(events: list[journal.Event]) -> LiveFrame:
    picture = LiveFrame(title="A task with a long title that goes on and on, as titles do")
    for event in events:
        picture.add(event)
    return picture


@pytest.mark.parametrize("width", [24, 40, 63, 64, 89, 90, 120, 200])
@pytest.mark.parametrize("height", [8, 12, 24, 50])
def test_it_fits_the_window(width: int, height: int) -> None:
    for events in (failed_run(), failed_run()[:9], started()):
        lines = drawn(picture_of(events), width, height)
        assert max(map(len, lines)) <= width
        assert len(lines) <= max(height, 10)


def test_a_wide_window_shows_everything() -> None:
    text = "\n".join(drawn(picture_of([*started(), sent(10, ANALYST)]), 120, 40, now=75))
    assert "round 1, analyst, cycle 1" in text
    assert "1:05" in text
    assert "analyst → peer analyst → programmer → peer programmer → tester" in text
    assert "gets its prompt" in text


def test_verdicts_come_with_their_evidence_and_tokens_with_their_role() -> None:
    lines = drawn(picture_of(failed_run()), 120, 40)
    assert any("REVISE" in line and "asks for changes" in line for line in lines)
    (row,) = [line for line in lines if line.startswith("programmer ")]
    assert "2.0k" in row


def test_an_agent_that_asks_is_shown() -> None:
    events = [*started(), sent(1, ANALYST)]
    asked = at(2, journal.PermissionAsked(role=ANALYST.name, terminal="00000000", accepted=False))
    assert any("asks for permission" in line for line in drawn(picture_of([*events, asked]), 100, 30))


def test_no_escape_sequence_of_an_agents_reaches_the_terminal() -> None:
    events = [*started(), at(5, journal.Warned(text="evil \x1b[2J\x07\nsecond [red]line[/red]"))]
    text = "\n".join(drawn(picture_of(events), 100, 30))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "second [red]line[/red]" in text


def test_watch_draws_on_a_terminal(tmp_path: Path) -> None:
    write(tmp_path / ".tmp" / "20260102-030405-abcdef", failed_run())
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "quintet", "watch", "--wd", str(tmp_path)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "90", "LINES": "30"},
    )
    os.close(slave)
    shown = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            shown += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    assert process.wait(30) == 0
    assert b"\x1b[?1049h" in shown, "the alternate screen"
    assert b"\x1b[?1049l" in shown, "and back"
    assert b"FAIL after round 1" in shown.split(b"\x1b[?1049l")[-1], "the last picture stays"


@pytest.mark.parametrize("width", [24, 40, 80, 120])
@pytest.mark.parametrize("height", [12, 16, 24])
def test_why_a_run_stopped_is_whole_in_every_window(width: int, height: int) -> None:
    reason = "1,200,345 tokens are used and MAX_TOKENS is 1,000,000; set a higher limit"
    stop = at(20, journal.RunStopped(reason=reason, max_tokens=1_000_000))
    lines = drawn(picture_of([*started(), sent(10, ANALYST), stop]), width, height)
    text = " ".join(" ".join(lines).split())
    assert reason in text
    assert "MAX_TOKENS=2000000 quintet run" in text
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_the_time_of_a_turn_is_the_time_at_work() -> None:
    stop = at(20, journal.RunStopped(reason="x"))
    resumed = at(5000, journal.RunResumed(run_id="20260102-030405-abcdef", step=""))
    lines = drawn(picture_of([*started(), sent(10, ANALYST), stop, resumed]), 100, 30, now=5005)
    (row,) = [line for line in lines if line.startswith("analyst  ")]
    assert "0:15" in row


def test_a_run_whose_process_is_gone_stands_still(tmp_path: Path) -> None:
    picture = picture_of([*started(), sent(10, ANALYST)])
    picture.run = replace(picture.run, status=GONE)
    text = "\n".join(drawn(picture, 100, 30, now=9000))
    assert "Interrupted in round 1   0:10" in text
    assert "quintet run" in text
    assert "at work  " not in text
    write(tmp_path / ".tmp" / "20260102-030405-abcdef", [*started(), sent(10, ANALYST)])
    for words in (["status"], ["watch", "--plain"], ["runs"], ["status", "--json"]):
        done = run([*words, "--wd", str(tmp_path)], os.environ, tmp_path)
        assert done.returncode == 0, done.stderr
        shown = done.stdout + done.stderr
        assert "Interrupted" in shown or "ended unexpectedly" in shown, words
        assert "Running" not in shown, words


def test_a_tight_window_cuts_no_word_that_matters() -> None:
    text = "\n".join(drawn(picture_of([*started(), sent(10, ANALYST), sent(20, ANALYST, cycle=2)]), 40, 16, now=85))
    assert "round 1, analyst, cycle 2   1:25" in text
    assert "peer programmer  waits" in text
    assert "…" not in text.split("\n\n")[1], "the agents"


def test_a_turn_that_waits_for_a_limit_is_not_shown_as_work() -> None:
    told = {
        "step": "1-1-analyst",
        "role": "analyst",
        "text": "5 hours are used up",
        "until": "2026-01-02T05:00:00+00:00",
    }
    limit = at(20, journal.LimitReached.model_validate(told))
    events = [*started(), sent(10, ANALYST), limit]
    text = "\n".join(drawn(picture_of(events), 100, 30))
    assert "waits to try again" in text
    assert f"waits until {local_date_time(told['until'])} for the end of a limit: 5 hours are used up" in text
    again = "\n".join(drawn(picture_of([*events, sent(30, ANALYST)]), 100, 30)[:10])
    assert "waits to try again" not in again
    assert "at work" in again
