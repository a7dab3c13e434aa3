"""The scenarios: what is sent, when a frame is taken, and what is true then."""

import os
import signal
import time
from collections.abc import Callable

from tests.e2e.exchange import Reply
from tools.recording.answers import LIST, MISLEADING, PLAIN, SENTENCES, STREAMED_MISLEADING
from tools.recording.cli import Cli
from tools.recording.questions import approvals, edit, question, trust
from tools.recording.recorder import LASTING, Frame, Recorder, programs, sleep_until, terminal
from tools.recording.script import NothingCameError

GIVES_UP = 10.0
"""Seconds that Claude Code may take after a refused request, without asking again, until it gives the turn up."""
SLOW = 0.25
"""Seconds between two pieces of a streamed answer."""


def record(cli: Cli, cols: int, rows: int) -> list[Frame]:
    """All scenarios in one size; one that a release does not offer is left out, and said."""
    frames: list[Frame] = []
    for unattended, scenes in ((True, UNATTENDED), (False, ASKING), (True, [killed])):
        with terminal(cli, cols, rows) as recorder:
            cli.start(recorder.pane, unattended=unattended, on_model_dialog=recorder.take_model_dialog)
            for scene in scenes:
                try:
                    scene(recorder)
                except NothingCameError as error:
                    print(f"{cli.name} {cli.version} {cols}x{rows}, {scene.__name__}: {error}\n{recorder.pane.text()}")
                    recorder.pane.key("C-u")
            frames += recorder.frames
    with terminal(cli, cols, rows) as recorder:
        trust(recorder)
        frames += recorder.frames
    return frames


def fresh(recorder: Recorder) -> None:
    recorder.take("idle", "fresh_start")
    recorder.pane.type("please find out why the tests are running slowly")
    time.sleep(LASTING)
    recorder.take("idle", "draft_unsent")
    recorder.pane.key("C-u")
    time.sleep(0.5)


def thinking(recorder: Recorder) -> None:
    first = recorder.ask("Review parser.py", Reply.say(PLAIN, delay=4))
    recorder.working("thinking_just_sent", first, 0.4)
    recorder.working("thinking", first, 2.5)
    recorder.ended("plain", first)
    second = recorder.ask("Check the imports as well", Reply.say(MISLEADING["adv_busy_words"], delay=3))
    recorder.working("second_prompt_just_sent", second, 0.4)
    recorder.working("second_prompt_stale_answer", second, 2)
    recorder.ended("adv_busy_words", second)


def tool(recorder: Recorder) -> None:
    key = "Run the script"
    call = recorder.ask(
        key, Reply.run("sleep 5; echo finished"), Reply.say(MISLEADING["adv_esc_to_interrupt"], delay=3)
    )

    def is_running() -> bool:
        return len(recorder.script.requests(key)) == 1

    sleep_until(call.arrived + 1.5)
    recorder.take("processing", "tool_running_1s", is_running)
    sleep_until(call.arrived + 4)
    recorder.take("processing", "tool_running", is_running)
    after = recorder.script.wait_for(key, step=1)
    recorder.working("thinking_after_tool", after, 1.5)
    recorder.ended("adv_esc_to_interrupt", after)


def streaming(recorder: Recorder) -> None:
    for prompt, answer, names in (
        ("Explain the function", SENTENCES, ("streaming", "streaming_late", "streamed")),
        ("Explain it again", STREAMED_MISLEADING, ("streaming_adv", "streaming_adv_late", "streamed_adv")),
        ("List all modules", LIST, ("streaming_long", "streaming_long_late", "long_scrolled")),
    ):
        # The longest answer is sent in many pieces, so each comes sooner.
        pace = SLOW if answer is not LIST else SLOW / 3
        exchange = recorder.ask(prompt, Reply(text=answer, delay=0.5, pace=pace))
        whole = exchange.last_byte - exchange.first_byte
        recorder.working(names[0], exchange, 0.5 + whole * 0.4)
        recorder.working(names[1], exchange, 0.5 + whole * 0.8)
        recorder.ended(names[2], exchange)


def quoting(recorder: Recorder) -> None:
    for name in ("adv_prompt_glyphs", "adv_dialog_quoted_last", "adv_shell_prompt"):
        recorder.ended(name, recorder.ask(f"Show me {name}", Reply.say(MISLEADING[name])))


def drafts(recorder: Recorder) -> None:
    recorder.pane.type("now stop running the tests and")
    time.sleep(LASTING)
    recorder.take("completed", "draft_unsent")
    recorder.pane.key("C-u")
    time.sleep(0.5)
    exchange = recorder.ask("Once more", Reply.say("Done.", delay=5))
    recorder.working("second_prompt_after_long", exchange, 1)
    recorder.pane.type("also look at")
    recorder.working("draft_while_processing", exchange, 3)
    recorder.pane.key("C-u")
    recorder.ended("short", exchange)


def renamed(recorder: Recorder) -> None:
    recorder.pane.send("/rename analyst-da33cf00")
    time.sleep(LASTING)
    recorder.take("completed", "after_rename")
    recorder.pane.key("C-u")
    exchange = recorder.ask("After the rename", Reply.say(PLAIN, delay=3))
    recorder.working("after_rename", exchange, 1)
    recorder.ended("after_rename_turn", exchange)


def queued(recorder: Recorder) -> None:
    recorder.script.plan("and a second thing", Reply.say("Done.", delay=2))
    first = recorder.ask("A first thing", Reply.say(PLAIN, delay=5))
    recorder.pane.send("and a second thing")
    recorder.working("queued_prompt", first, 3)
    recorder.ended("after_queued_prompt", recorder.script.wait_for("and a second thing"))


def interrupted(recorder: Recorder) -> None:
    exchange = recorder.ask("Take your time", Reply.say(PLAIN, delay=20))
    recorder.working("thinking_before_escape", exchange, 2)
    recorder.pane.key("Escape")
    time.sleep(LASTING)
    recorder.take("interrupted", "escape_while_thinking", lambda: time.monotonic() < exchange.first_byte)
    recorder.pane.key("C-u")
    time.sleep(0.5)


def failing(recorder: Recorder) -> None:
    key = "Try this"
    recorder.ask(key, Reply(status=500, text="scripted failure", delay=2))
    again = recorder.script.wait_for(key, count=2)
    recorder.working("retrying", again, 1)
    if recorder.cli.name == "claude":
        recorder.pane.key("Escape")
        time.sleep(LASTING)
        recorder.take("interrupted", "escape_while_retrying")
        recorder.pane.key("C-u")
        time.sleep(0.5)
        failed = recorder.ask("Try that", Reply(status=400, text="scripted failure", delay=1))
        recorder.ended("http_400", failed, "error_turn", GIVES_UP)
    else:
        _wait_for_silence(recorder, key)
        recorder.ended("http_500", recorder.script.requests(key)[-1], "error_turn")
    recorder.ended("after_error", recorder.ask("And now", Reply.say(PLAIN, delay=1)))


def _wait_for_silence(recorder: Recorder, key: str) -> None:
    """Until no request has come for longer than the program waits between two."""
    while time.monotonic() < recorder.script.requests(key)[-1].last_byte + 6:
        time.sleep(0.2)


def closed(recorder: Recorder) -> None:
    """An answer that breaks off. Claude Code keeps what has come, and may call the turn done."""
    if recorder.cli.name != "codex":
        return
    key = "Break off"
    recorder.ask(key, Reply(text=PLAIN, delay=1, cut=True))
    _wait_for_silence(recorder, key)
    recorder.ended("stream_closed", recorder.script.requests(key)[-1], "error_turn")


def background(recorder: Recorder) -> None:
    """A command that goes on after the turn."""
    key = "Start the server"
    recorder.ask(key, Reply(command="sleep 600", background=True), Reply.say("It is running."))
    recorder.ended("background_command_left_running", recorder.script.wait_for(key, step=1))


def leaving(recorder: Recorder) -> None:
    recorder.pane.send(recorder.cli.quit_command)
    time.sleep(1)
    if programs(recorder):
        recorder.pane.key("Enter")
    deadline = time.monotonic() + 15
    while programs(recorder) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1)
    recorder.take("exited", "quit", lambda: not programs(recorder))


def killed(recorder: Recorder) -> None:
    recorder.ask("A long one", Reply.say(PLAIN, delay=60))
    time.sleep(2)
    for pid in programs(recorder):
        os.kill(pid, signal.SIGKILL)
    time.sleep(LASTING)
    recorder.take("exited", "killed_while_processing", lambda: not programs(recorder))
    recorder.pane.send("ls")
    time.sleep(1)
    recorder.take("exited", "killed_then_shell_used", lambda: not programs(recorder))


Scene = Callable[[Recorder], None]
UNATTENDED: list[Scene] = [
    fresh,
    thinking,
    tool,
    streaming,
    drafts,
    quoting,
    renamed,
    queued,
    interrupted,
    failing,
    closed,
    background,
    leaving,
]
ASKING: list[Scene] = [approvals, edit, question]
