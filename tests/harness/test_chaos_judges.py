"""The judges of the chaos runs themselves: each must be able to find what it looks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.chaos.books import Books, step_marker
from quintet.loop.decide.state import State
from quintet.loop.record.state_file import save_state

RUN = "run-1"
SENT = {"event": "prompt_sent", "step": "1-1-analyst", "role": "analyst"}


@pytest.fixture
def books(tmp_path: Path) -> Books:
    (tmp_path / ".tmp" / RUN).mkdir(parents=True)
    return Books(tmp_path)


def journal(books: Books, *events: dict[str, Any]) -> None:
    text = "".join(f"{json.dumps(event)}\n" for event in events)
    (books.wd / ".tmp" / RUN / "journal.jsonl").write_text(text)


def test_a_response_in_no_safe_place_is_lost(books: Books) -> None:
    save_state(State(outputs={"analyst": "in the outputs\n"}), books.state_file)
    (books.wd / ".tmp" / RUN / "002-tester-stale.md").write_text("in the archive\r\n")
    assert books.lost([b"in the outputs", b"in the archive\n"]) == []
    assert books.lost([b"nowhere\n", b"caf\xe9"]) == [
        "a response is lost: 'nowhere'",
        "a response is lost: 'caf\ufffd'",
    ]


def test_a_prompt_that_came_twice_needs_a_reason(books: Books) -> None:
    key = f"{RUN}-1-1-analyst"
    journal(books, SENT, SENT)
    assert books.repeated([key]) == []
    assert len(books.repeated([key, key])) == 1
    assert len(books.repeated([step_marker(RUN, "1-1-analyst")] * 2)) == 1


@pytest.mark.parametrize(
    "reason",
    [
        {"event": "terminal_created", "role": "analyst"},
        {"event": "noted", "text": "the last prompt had not reached analyst; it is sent now"},
    ],
)
def test_a_reason_counts_once_and_only_for_its_role(books: Books, reason: dict[str, Any]) -> None:
    key = f"{RUN}-1-1-analyst"
    journal(books, SENT, reason, SENT)
    assert books.repeated([key, key]) == []
    assert len(books.repeated([key, key, key])) == 1
    journal(books, reason, SENT, SENT)
    assert len(books.repeated([key, key])) == 1, "what was said before it was sent is no reason to repeat it"


def test_a_torn_state_file_is_told(books: Books) -> None:
    assert books.unloadable() == []
    books.state_file.write_text('{"version": 1, "ro')
    assert len(books.unloadable()) == 1
