"""What lies in a run's folder, where agents can write too: its journal, its changes, its server's word."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final, get_args

import httpx
from hypothesis import strategies as st
from pydantic import BaseModel
from rich.console import Console

from harness.fuzz.files import FOLDER, written
from harness.fuzz.hostile import as_bytes, json_object, json_objects, json_values, one_of, replies, texts
from harness.fuzz.properties import holds, one_line
from quintet.api.cao_backend import CaoBackend
from quintet.api.client import ApiClient
from quintet.api.quintet_backend import QuintetBackend
from quintet.errors import ApiError
from quintet.loop.journal import Event
from quintet.loop.record.journal_file import Journal
from quintet.roles import ROLES
from quintet.watch.console.live_view import LiveFrame
from quintet.watch.dashboard.run_json import handoff_json, run_json
from quintet.watch.report.report_html import report_html
from quintet.watch.report.report_markdown import report_markdown
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.folders import JournalTail, has_process, read_text
from quintet.watch.runs.model import run_from_events
from quintet.watch.runs.summary import summarise
from quintet.watch.runs.terminal_status import find_server, terminal_statuses

EVENTS: Final[tuple[type[BaseModel], ...]] = get_args(get_args(Event)[0])
TIMES: Final = (
    "2026-01-02T03:04:05.000+00:00", "2026-01-02T03:04:05", "0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59", "1969-12-31", "20260102", "now", "2026-01-02T03:09:05.000+00:00",
)  # fmt: skip
_words: Final = (
    *(role.name for role in ROLES), "1-1-analyst", "1-1-tester", "1-1-tester-again", "file", "screen", "PASS", "FAIL",
    "APPROVED", "REVISE", "001-analyst.md", "../../x", "committed as ", *TIMES,
)  # fmt: skip
_values = json_values(_words, ("input", "cached", "output"))
_numbers = one_of("1", "2", "0", "-1", "1.5", "1e999", "NaN", "9" * 400, "9" * 4000, "1e18")
_texts = one_of(*map(json.dumps, _words)) | texts(size=3).map(
    lambda text: json.dumps(text.encode("utf-8", "replace").decode())
)
_tokens = st.tuples(_numbers, _numbers).map(lambda pair: f'{{"input": {pair[0]}, "output": {pair[1]}}}')


def _line(kind: type[BaseModel]) -> st.SearchStrategy[str]:
    """A line of a kind, with what belongs into each field, or with anything."""
    names = [name for name in kind.model_fields if name != "event"]
    times = one_of(*map(json.dumps, TIMES))
    fitting = {"tokens": _tokens, "evidence": _texts.map(lambda text: f"[{text}]"), "at": times}
    flags = st.sampled_from(("true", "false"))
    kinds = {int: _numbers, float: _numbers, bool: flags, float | None: _numbers}
    kinds_of = {name: kinds.get(kind.model_fields[name].annotation, _texts) for name in names}  # type: ignore[arg-type]
    right = [fitting.get(name, kinds_of[name]) for name in names]
    event = json.dumps(kind.model_fields["event"].default)
    return st.tuples(*(found | _values if number % 5 == 4 else found for number, found in enumerate(right))).map(
        lambda values: json_object([("event", event), *zip(names, values, strict=True)])
    )


journals = as_bytes(st.lists(st.one_of([_line(kind) for kind in EVENTS]) | _values, max_size=8).map("\n".join))


def _told(data: bytes) -> Iterator[str]:
    """Everything that is shown of a run."""
    folder = written(data, "w/.tmp/run/journal.jsonl").parent
    events = list(Journal(folder / "journal.jsonl").read())
    tail = JournalTail(folder / "journal.jsonl")
    assert len(tail.read_new()) >= len(events) - 1  # a last line without its end is not whole yet
    yield from map(line_for, events)
    run = run_from_events(events)
    yield json.dumps(run_json(run, "title", events), allow_nan=False)
    yield from (json.dumps(handoff_json(folder, run, handoff)) for handoff in run.handoffs)
    summary = summarise(folder)
    yield report_markdown(summary)
    yield report_html(summary)
    console = Console(file=StringIO(), width=100)
    for width, height in ((40, 10), (100, 40)):
        console.print(LiveFrame(run, "title", {}, events).draw(width, height))
    has_process(FOLDER / "w", run)
    terminal_statuses(FOLDER / "w", run)


@holds("journal lines", journals)
def a_journal_is_shown_whatever_it_says(data: bytes) -> None:
    (FOLDER / "w/.tmp/server.json").unlink(missing_ok=True)
    for text in _told(data):
        text.encode("utf-8")


@holds("journal lines", st.tuples(replies, replies))
def the_files_of_a_handoff_are_shown_whatever_they_say(found: Any) -> None:
    prompt, reply = found
    written(prompt.encode("utf-8", "replace"), "w/.tmp/run/p.md")
    written(reply.encode("utf-8", "replace"), "w/.tmp/run/r.md")
    lines: list[dict[str, Any]] = [
        {"event": "prompt_sent", "step": f"{number}-1-x", "role": role.name, "round": number, "cycle": number,
         "characters": 1, "file": "p.md", "at": TIMES[0]} | extra
        for number in (1, 2) for role in ROLES
        for extra in ({}, {"event": "reply_taken", "source": "file", "file": "r.md"})
    ]  # fmt: skip
    for text in _told("\n".join(map(json.dumps, lines)).encode()):
        text.encode("utf-8")


_changes = json_values(("new", "<b>"), ("files", "more", "note", "path", "kind", "added", "removed"))
_files = json_objects(("path", "kind", "added", "removed"), _changes).map(lambda one: f'{{"files": [{one}]}}')


@holds("journal lines", as_bytes(_files | json_objects(("files", "more", "note"), _changes)))
def what_is_noted_of_changes_is_shown_as_text(data: bytes) -> None:
    folder = written(data, "w/.tmp/run/changes.json").parent
    written(b"", "w/.tmp/run/journal.jsonl")
    summary = summarise(folder)
    report_markdown(summary).encode("utf-8")
    assert "<b>" not in report_html(summary)
    (folder / "changes.json").unlink()


_word = json_values(("http://127.0.0.1:9", "http://localhost:9", "http://[", "http://192.0.2.1"), ("url", "token"))


@holds("journal lines", as_bytes(json_objects(("url", "token", "pid"), _word) | _word))
def a_servers_word_is_an_address_here_or_none(data: bytes) -> None:
    written(data, "v/.tmp/server.json")
    written(data, "v/.tmp/quintet.pid")
    server = find_server(FOLDER / "v")
    assert server is None or httpx.URL(server.url).host in ("127.0.0.1", "localhost", "::1")
    has_process(FOLDER / "v", run_from_events([]))


@holds("journal lines", st.text(st.characters(codec=None), max_size=300))
def no_name_leads_out_of_a_runs_folder(name: str) -> None:
    written(b"", "w/.tmp/run/journal.jsonl")
    assert read_text(FOLDER / "w/.tmp/run", name) == ""


_FIELDS: Final = ("id", "status", "detail", "failure", "resets_at", "usage", "output", "kind", "reason")
_answer = json_values(("idle", "completed"), _FIELDS)


@holds("answers of another server", st.tuples(
    as_bytes(_answer | json_objects(_FIELDS, _answer)),
    one_of(200, 201, 204, 301, 400, 404, 418, 422, 429, 500, 503), one_of("a", "../x", "\0", "\ud800"),
))  # fmt: skip
def any_answer_is_understood_or_one_line(found: Any) -> None:
    data, status, terminal = found
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=data))
    client = ApiClient("http://127.0.0.1:9", "/", transport=transport)
    for backend in (CaoBackend(client), QuintetBackend(client)):
        for ask in (backend.get_terminal, backend.get_last_output, backend.exit_terminal, backend.delete_session):
            try:
                ask(terminal)
            except ApiError as error:
                one_line(error)
        try:
            backend.create_session("p", "codex")
        except ApiError as error:
            one_line(error)
