"""Inputs of any size whose shape is bad for somebody who reads them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.fuzz.agents import ACP_SHAPES, whole_turn
from harness.fuzz.files import FOLDER, written
from harness.fuzz.journals import TIMES
from harness.fuzz.requests import application
from harness.fuzz.words import ROWS, SETTINGS, providers
from quintet.ansi import only_colours
from quintet.config import load_settings
from quintet.errors import QuintetError
from quintet.loop.decide import condense, gate
from quintet.loop.decide.task import parse_task
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.state_file import load_state
from quintet.providers.claude_code.record import Hooks, TranscriptTurn, read_hook, read_transcript
from quintet.providers.codex.record import Rollout, read_line
from quintet.providers.codex.rollouts import is_marked
from quintet.providers.file_follower import Follower
from quintet.providers.reset_times import reset_time
from quintet.providers.screen import Screen
from quintet.roles import ROLES, Phase
from quintet.server.terminal.input import without_control_characters
from quintet.watch.dashboard.run_json import handoff_json, run_json
from quintet.watch.report.report_html import report_html
from quintet.watch.report.report_markdown import report_markdown
from quintet.watch.runs.folders import JournalTail
from quintet.watch.runs.formatting import one_line
from quintet.watch.runs.model import run_from_events
from quintet.watch.runs.summary import summarise
from tests.loop.texts import SHAPES


@dataclass(frozen=True)
class Case:
    """Something that reads, and the shape of what it is given."""

    kind: str
    shape: str
    prepare: Callable[[int], Callable[[], object]]
    """what has to be done for a size; making the input is not measured"""


def cases() -> Iterator[Case]:
    """Everything that reads what others have written."""
    yield from _replies()
    yield from _screens()
    yield from _files()
    yield from _records()
    yield from _journals()
    yield from _requests()


def _texts(kind: str, read: Callable[[str], object], shapes: tuple[str, ...]) -> Iterator[Case]:
    for shape in shapes:
        yield Case(kind, shape[:30], partial(_of_text, read, shape))


def _of_text(read: Callable[[str], object], shape: str, size: int) -> Callable[[], object]:
    return partial(read, shape * (size // len(shape)))


def _replies() -> Iterator[Case]:
    def judge(text: str) -> None:
        gate.read_test_verdict(text)
        for phase in (Phase.ANALYST, Phase.PROGRAMMER):
            gate.judge_review(text, phase, 2, SETTINGS)

    def shorten(text: str) -> None:
        condense.extract_review_notes(text, SETTINGS)
        condense.extract_test_evidence(text, SETTINGS)
        condense.condense_for_programmer(text, SETTINGS)
        condense.condense_for_tester(text, SETTINGS)

    yield from _texts("replies: gates", judge, SHAPES)
    yield from _texts("replies: condensation", shorten, SHAPES)


def _screens() -> Iterator[Case]:
    def read(text: str) -> None:
        screen = Screen(text, cursor=(3, text.count("\n")))
        for provider in providers:
            provider.read_screen(screen)
            provider.startup_dialog(screen, FOLDER)
            provider.draft(screen)
            provider.holds_draft(screen, text)
            provider.read_reply(text)
            provider.escape(text)

    def show(text: str) -> None:
        only_colours(text)
        without_control_characters(text)
        one_line(text)

    rows = tuple(f"{row}\n" for row in ROWS)
    yield from _texts("screens", read, (*rows, "› ", "❯ ", " ", "\n", "› \n", "──\n❯ \n", "• x (1", "x@y:"))
    yield from _texts("pictures", show, ("\x1b[", "\x1b]", "\x1b", "\x1b[1", "\x1b]x\x1b", "\x1b[1;", "x", "\x9b"))


def _files() -> Iterator[Case]:
    def config(text: str) -> None:
        (FOLDER / "big.json").write_text(text, encoding="utf-8")
        try:
            load_settings(Path("big.json"), {}, {}, FOLDER)
        except QuintetError:
            return

    def keys(size: int, *, twin: bool) -> Callable[[], object]:
        names = [*range(size // 12), *([size // 12 - 1] if twin else [])]
        return partial(config, "{" + ",".join(f'"{name:06d}":1' for name in names) + "}")

    def task(text: str) -> None:
        for whole in (text, f"*** SCENARIO TEST ***\n{text}"):
            try:
                parse_task(whole)
            except QuintetError:
                continue

    yield Case("config files", "many keys", partial(keys, twin=False))
    yield Case("config files", "a twin among many keys", partial(keys, twin=True))
    yield from _texts("config files", config, ("[", "{", '{"prompt":', '"', "\\", "1", " "))
    blocks = ("~", "`", "- ", "1. ", "- a\n ", " - ~~~verify\n", "```verify\n", "```verify\nx\n```\n", "~~~ verify ")
    lines = ("*", "*** ", "S\n", "*** scenario test\n", "*** SCENARIO TEST ***x\n", "\r")
    yield from _texts("task files", task, (*lines, *blocks))
    state = '{"outputs": {"analyst": "%s"}, "feedback": "%s"}'
    yield Case(
        "state files",
        "long texts",
        lambda size: partial(
            load_state, written((state % ("x" * (size // 2), "\\n" * (size // 4))).encode(), "s.json")
        ),
    )


def _lines(line: str, size: int) -> bytes:
    """A file of such lines; `%d` in one is its number."""
    count = size // (len(line) + 5)
    return "".join(line.replace("%d", str(number)) + "\n" for number in range(count)).encode()


def _records() -> Iterator[Case]:
    def codex(data: bytes) -> None:
        Follower(written(data, "big.jsonl"), Rollout(), read_line).read().since(0)
        is_marked(data, "token_count")

    def claude(data: bytes) -> None:
        path = written(data, "big.jsonl")
        spending = Follower(path, TranscriptTurn(prompt="p"), read_transcript).read()
        Follower(path, Hooks(), read_hook).read().since(0, spending)

    lines = {
        "codex": ('{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"output_tokens":'
                  "%d}}}}",
                  '{"type":"event_msg","payload":{"type":"error","message":"usage limit, in 1 s %d"}}',
                  '{"type":"event_msg","payload":{"type":"task_started","turn_id":"%d"}}'),
        "claude": ('{"type":"assistant","message":{"id":"%d","usage":{"input_tokens":1},"content":"x"}}',
                   '{"type":"assistant","message":{"id":"m","usage":{},"content":"a text of some length"}}',
                   '{"hook_event_name":"UserPromptSubmit","prompt_id":"%d","prompt":"x"}',
                   '{"hook_event_name":"Stop","background_tasks":[{"type":"x"}]}'),
    }  # fmt: skip
    for shape in ACP_SHAPES:
        yield Case("turns of the protocol", shape[:60], partial(_of_lines, whole_turn, shape))
    for name, read in (("codex", codex), ("claude", claude)):
        for line in lines[name]:
            yield Case(f"records of {name}", line[:60], partial(_of_lines, read, line))
    shapes = ("in 1 s ", "in ", "in 1", "1 s,", "9", "resets ", "resets Nov 1", "again at 1:1", "|1", " ", "in 1s and ")
    yield from _texts("usage-limit texts", lambda text: reset_time(text, 1e9), shapes)
    yield from _texts("usage-limit texts", lambda text: reset_time(f"in 1 s{text}", 1e9), shapes)


def _of_lines(read: Callable[[bytes], object], line: str, size: int) -> Callable[[], object]:
    return partial(read, _lines(line, size))


def _journals() -> Iterator[Case]:
    def told(data: bytes) -> None:
        folder = written(data, "g/.tmp/run/journal.jsonl").parent
        events = list(Journal(folder / "journal.jsonl").read())
        run = run_from_events(events)
        run_json(run, "", events)
        summary = summarise(folder)
        report_markdown(summary)
        report_html(summary)

    def torn(size: int) -> Callable[[], object]:
        path = written(b"", "g/.tmp/run/journal.jsonl")
        tail = JournalTail(path)

        def grow() -> None:
            for _ in range(size // 250):
                with path.open("ab") as file:
                    file.write(b"x" * 250)
                tail.read_new()

        return grow

    stamp = f'"at":"{TIMES[0]}"'
    lines = [
        f'{{"event":"warned","text":"%d",{stamp}}}',
        f'{{"event":"test_judged","round":1,"verdict":"PASS","reason":"",{stamp}}}',
        f'{{"event":"run_resumed","run_id":"x","step":"",{stamp}}}',
        f'{{"event":"terminal_created","role":"r%d","terminal":"x","provider":"x","seconds":1,{stamp}}}',
        f'{{"event":"reminded","role":"tester","number":1,{stamp}}}',
        *(
            f'{{"event":"prompt_sent","step":"%d","role":"{role.name}","round":{number},"cycle":1,"characters":1,{stamp}}}'
            for role in ROLES[:2]
            for number in ("1", "%d")
        ),
    ]
    pairs = "\n".join((lines[5], f'{{"event":"test_judged","round":1,"verdict":"PASS","reason":"",{stamp}}}'))
    for line in (*lines, pairs):
        yield Case("journals", line[:60], partial(_of_lines, told, line))
    yield Case("journals", "a line without an end", torn)
    for shape in ("`", "Explore summary:\n", "Explore summary:\nx\nRound", "x\n", "|", "<"):
        yield Case("prompts and replies, as shown", shape, partial(_handoff, shape))


def _handoff(shape: str, size: int) -> Callable[[], object]:
    text = (shape * (size // len(shape))).encode()
    folder = written(text, "g/.tmp/run/text.md").parent
    sent = [
        {"event": "prompt_sent", "step": f"{cycle}", "role": role.name, "round": 1, "cycle": cycle, "characters": 1,
         "file": "text.md", "at": TIMES[0]}
        for cycle in (1, 2) for role in ROLES
    ]  # fmt: skip
    events = [one for item in sent for one in (item, item | {"event": "reply_taken", "source": "file"})]
    written("\n".join(map(json.dumps, events)).encode(), "g/.tmp/run/journal.jsonl")

    def show() -> None:
        summary = summarise(folder)
        for handoff in summary.run.handoffs:
            handoff_json(folder, summary.run, handoff)
        report_markdown(summary)
        report_html(summary)

    return show


def _requests() -> Iterator[Case]:
    let_in = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer secret"), (b"content-type", b"application/json")]

    def ask(size: int, what: str) -> Callable[[], object]:
        query, headers, body = b"", list(let_in), b""
        if what == "query":
            query = b"args=x&" * (size // 7)
        elif what == "headers":
            headers += [(b"x%d" % number, b"y" * 80) for number in range(size // 90)]
        elif what == "body":
            body = b'{"message": "' + b"\\u0041" * (size // 6) + b'"}'
        else:
            body = b'{"env_vars": {' + b",".join(b'"%d":1' % number for number in range(size // 10)) + b"}}"
        path = "/terminals/0123abcd/input" if what == "body" else "/sessions"
        return lambda: application().ask("POST", path, query + b"provider=scripted&agent_profile=tester", headers, body)

    for what in ("query", "headers", "body", "wrong values"):
        yield Case("requests", what, partial(ask, what=what))
