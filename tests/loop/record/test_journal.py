"""The journal: one typed event a line."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given

from quintet.loop.journal import Event, RoundFailed, RunFinished, RunStarted, TestJudged, Warned
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.journal_lines import schema
from tests.loop.texts import strange_text

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
EVENTS: list[Event] = [
    RunStarted(run_id="r", wd="/p", start_agent="analyst"),
    TestJudged(round=1, verdict="FAIL", reason="ü\nx"),
    RoundFailed(round=1, last=True),
    RunFinished(status="FAIL", round=1),
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "below" / "journal.jsonl", lambda: NOW)


def test_what_is_written_is_read_in_order(journal: Journal) -> None:
    stamped = [journal.write(event) for event in EVENTS]
    assert list(journal.read()) == stamped
    assert {event.at for event in stamped} == {"2026-01-02T03:04:05.678+00:00"}


def test_every_event_is_one_json_object_on_a_line(journal: Journal) -> None:
    for event in EVENTS:
        journal.write(event)
    lines = journal.path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == [
        "run_started",
        "test_judged",
        "round_failed",
        "run_finished",
    ]


def test_there_is_nothing_to_read_before_the_first_event(journal: Journal) -> None:
    assert list(journal.read()) == []


@pytest.mark.parametrize(
    "torn", [b'{"event": "warned", "te', b"\xff\xfe\0", b"[]\n", b'{"event": "unheard of"}\n', b"\n\n"]
)
def test_torn_and_foreign_lines_are_passed_over(journal: Journal, torn: bytes) -> None:
    first = journal.write(EVENTS[0])
    with journal.path.open("ab") as file:
        file.write(torn)
    second = journal.write(EVENTS[1])
    assert list(journal.read()) == [first, second]


def test_fields_that_a_later_version_adds_are_ignored(journal: Journal) -> None:
    journal.write(EVENTS[2])
    line = journal.path.read_text().replace('"round"', '"more": 1, "round"')
    journal.path.write_text(line)
    assert list(journal.read()) == [EVENTS[2].model_copy(update={"at": "2026-01-02T03:04:05.678+00:00"})]


@given(strange_text)
def test_any_text_can_be_written(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    journal = Journal(tmp_path_factory.getbasetemp() / "any-text.jsonl", lambda: NOW)
    journal.path.unlink(missing_ok=True)
    journal.write(Warned(text=text))
    (event,) = journal.read()
    assert isinstance(event, Warned)
    assert event.text == text.encode("utf-8", "replace").decode()


def test_the_schema_knows_every_event() -> None:
    mapping = schema()["discriminator"]["mapping"]
    assert {"run_started", "prompt_sent", "reply_taken", "review_judged", "run_finished"} <= mapping.keys()
