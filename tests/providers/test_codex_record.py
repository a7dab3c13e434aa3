"""The rollout of Codex, read line by line."""

import json
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.api.status import FailureKind
from quintet.providers.base import RecordedFailure, TurnRecord
from quintet.providers.codex.launch import NOTES, Notes
from quintet.providers.codex.record import Rollout, read_line
from quintet.providers.codex.rollouts import find_rollout, is_marked, mark
from quintet.providers.file_follower import Follower
from quintet.tokens import recorded_tokens

MARK = mark("0a1b2c3d")


def event(kind: str, **payload: Any) -> bytes:
    stamp = "2026-11-15T08:40:41.526Z"
    return json.dumps({"timestamp": stamp, "type": "event_msg", "payload": {"type": kind, **payload}}).encode()


def said(message: str, kind: str) -> bytes:
    payload = {"type": "user_message", "message": message, "kind": kind}
    return json.dumps({"type": "event_msg", "payload": payload}).encode()


def tokens(total_input: int, output: int, cached: int = 0) -> bytes:
    usage = {"input_tokens": total_input, "cached_input_tokens": cached, "output_tokens": output}
    return event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})


def fold(*lines: bytes) -> Rollout:
    return reduce(lambda seen, numbered: read_line(seen, *numbered), enumerate(lines), Rollout())


def read(*lines: bytes, since: int = 0) -> TurnRecord | None:
    return fold(*lines).since(since)


STARTED = event("task_started", turn_id="t1")
DONE = event("task_complete", turn_id="t1", last_agent_message="All done.\n\nReally.")


def test_a_turn_begins_and_ends_with_its_exact_message() -> None:
    assert read() is None
    assert read(STARTED) == TurnRecord(ended=False)
    assert read(STARTED, DONE) == TurnRecord(ended=True, last_message="All done.\n\nReally.")


def test_a_prompt_that_somebody_types_after_ours_is_seen() -> None:
    ours, theirs = event("user_message", message="ours"), said("theirs", "plain")
    context = said("<environment_context>", "environment_context")

    def typed(*lines: bytes, since: int = 0) -> bool | None:
        found = read(*lines, since=since)
        return found.typed if found else None

    assert typed(STARTED, ours, DONE) is False
    assert typed(STARTED, context, ours, DONE) is False, "nobody has typed that"
    assert typed(STARTED, ours, theirs) is True, "while the agent works"
    assert typed(STARTED, ours, DONE, STARTED, theirs, DONE) is True
    assert typed(STARTED, ours, DONE, STARTED, theirs, DONE, STARTED, ours, since=6) is False
    assert typed(STARTED, DONE, STARTED, DONE) is False, "a turn that no prompt began is nobody's typing"
    prompt, reply = (event("item_completed", item={"type": kind}) for kind in ("UserMessage", "AgentMessage"))
    assert typed(STARTED, prompt, reply, DONE) is False
    assert typed(STARTED, prompt, reply, DONE, STARTED, prompt, reply, DONE) is True, "as Codex 0.166.0 writes it"
    assert typed(STARTED, prompt, ours, DONE) is False, "one prompt that is told in both ways"
    assert typed(STARTED, prompt, ours, DONE, STARTED, prompt, ours, DONE) is True


def test_a_turn_from_before_the_prompt_does_not_count() -> None:
    assert read(STARTED, DONE, since=1) is None
    assert read(STARTED, DONE, event("task_started", turn_id="t2"), since=2) == TurnRecord(ended=False)


def test_an_end_of_another_turn_is_not_that_of_the_last() -> None:
    assert read(STARTED, event("task_started", turn_id="t2"), DONE) == TurnRecord(ended=False)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"message": "You've hit your usage limit. Try again at 3:00 PM.", "codex_error_info": "usage_limit_exceeded"},
         "usage limit: You've hit your usage limit. Try again at 3:00 PM."),
        ({"message": "unexpected status 401 Unauthorized: no login", "codex_error_info": "other"},
         "login: unexpected status 401 Unauthorized: no login"),
        ({"message": "high demand", "codex_error_info": "internal_server_error"}, "server error: high demand"),
        ({"message": "exceeded retry limit, last status: 429 Too Many Requests"},
         "rate limit: exceeded retry limit, last status: 429 Too Many Requests"),
        ({"message": "Too fast", "codex_error_info": {"response_too_many_failed_attempts": {"http_status_code": 429}}},
         "rate limit: Too fast"),
        ({"message": "429: You've hit your usage limit", "codex_error_info": "usage_limit_exceeded"},
         "usage limit: 429: You've hit your usage limit"),
        ({"message": "stream disconnected\nbefore completion"}, "connection: stream disconnected before completion"),
        ({"message": "Quota exceeded (insufficient_quota)."}, "Quota exceeded (insufficient_quota)."),
        ({"message": "You've hit your usage limit."}, "usage limit: You've hit your usage limit."),
        ({"message": "unexpected status 404: The model `m` does not exist"},
         "model: unexpected status 404: The model `m` does not exist"),
        ({"message": "bad thing"}, "bad thing"),
        ({}, "the turn has failed"),
    ],
)  # fmt: skip
def test_a_failed_turn_has_its_reason(error: dict[str, Any], reason: str) -> None:
    ended = event("task_complete", turn_id="t1", last_agent_message=None, error=error)
    found = read(STARTED, ended)
    assert found is not None
    assert (found.ended, str(found.failure)) == (True, reason)


@pytest.mark.parametrize(
    ("kind", "text", "seconds"),
    [
        (FailureKind.USAGE_LIMIT, "usage_limit: try again in 20s", 20.5),
        (FailureKind.RATE_LIMIT, "Rate limit reached, try again in 1.5s", 2.0),
    ],
)
def test_a_limit_says_when_it_ends(kind: FailureKind, text: str, seconds: float) -> None:
    ended = json.loads(event("task_complete", turn_id="t1", error={"message": text}))
    ended["timestamp"] = "2026-03-01T10:00:00.500Z"
    found = read(STARTED, json.dumps(ended).encode())
    assert found is not None
    end = datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp() + seconds
    assert found.failure == RecordedFailure(kind, text, end)


def test_the_reason_stands_before_the_end_in_older_releases() -> None:
    failed = event("error", message="bad thing", codex_error_info="other")
    ended = event("task_complete", turn_id="t1", last_agent_message=None)
    assert read(STARTED, failed, ended) == TurnRecord(
        ended=True, failure=RecordedFailure(FailureKind.OTHER, "bad thing")
    )
    assert read(STARTED, failed, DONE) == TurnRecord(ended=True, last_message="All done.\n\nReally.")


def test_a_turn_without_an_answer_has_failed() -> None:
    silent = event("task_complete", turn_id="t1", last_agent_message=None)
    assert read(STARTED, silent) == TurnRecord(
        ended=True, failure=RecordedFailure(FailureKind.OTHER, "the turn has ended without an answer")
    )


def test_an_interrupted_turn_is_over() -> None:
    assert read(STARTED, event("turn_aborted", turn_id="t1", reason="interrupted")) == TurnRecord(
        ended=True, failure=RecordedFailure(FailureKind.INTERRUPTED, "interrupted")
    )


def test_the_tokens_of_a_turn_are_what_it_added() -> None:
    first = (STARTED, tokens(1000, 20), tokens(1000, 20), tokens(2500, 50, 700), DONE)
    second = (event("task_started", turn_id="t2"), event("token_count", info=None), tokens(4000, 60, 900))
    assert fold(*first).since(0) == TurnRecord(True, "All done.\n\nReally.", usage=recorded_tokens(2500, 700, 50))
    assert fold(*first, *second).since(5) == TurnRecord(False, usage=recorded_tokens(1500, 200, 10))


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"null", b"[]", b'"event_msg"', b'{"type":"event_msg"}', b'{"type":"event_msg","payload":[]}',
     b'{"type":"event_msg","payload":{"type":"task_complete"', b"\xff\xfe",
     b'{"type":"event_msg","payload":' + b"[" * 9000,
     b'{"type":"event_msg","payload":{"type":["task_complete"]}}', b'{"type":"event_msg","payload":{"type":{}}}',
     event("token_count", info={"total_token_usage": "many"}), event("agent_message", message="task_complete")],
)  # fmt: skip
def test_what_is_torn_or_foreign_changes_nothing(line: bytes) -> None:
    assert read(STARTED, line, DONE) == read(STARTED, DONE)


@given(st.binary(max_size=200))
def test_no_line_is_fatal(line: bytes) -> None:
    read_line(Rollout(), 0, b'{"type":"event_msg",' + line)


def test_a_quoted_end_is_none() -> None:
    quoted = {"type": "response_item", "payload": {"type": "message", "content": '{"type":"event_msg"} task_complete'}}
    assert read(STARTED, json.dumps(quoted).encode()) == TurnRecord(ended=False)


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    seen: list[int] = []

    def note(rollout: Rollout, position: int, line: bytes) -> Rollout:
        seen.append(position)
        return read_line(rollout, position, line)

    follower = Follower(path, Rollout(), note)
    assert follower.read() == Rollout()
    path.write_bytes(STARTED + b"\n" + DONE[:20])
    assert follower.read().since(0) == TurnRecord(ended=False)
    with path.open("ab") as file:
        file.write(DONE[20:] + b"\n")
    assert follower.read().since(0) == TurnRecord(ended=True, last_message="All done.\n\nReally.")
    assert seen == [0, len(STARTED) + 1]
    path.write_bytes(STARTED + b"\n")
    assert follower.read().since(0) == TurnRecord(ended=False), "a file that was replaced is read anew"


def head(*, source: Any = "cli", role: str = "developer", text: str = MARK) -> bytes:
    meta = {"type": "session_meta", "payload": {"id": "x", "source": source}}
    told = {"type": "response_item", "payload": {"type": "message", "role": role, "content": [{"text": text}]}}
    return b"\n".join(json.dumps(line).encode() for line in (meta, told)) + b"\n"


def test_a_rollout_is_known_by_its_mark() -> None:
    assert is_marked(head(), MARK)
    assert not is_marked(head(text=mark("ffffffff")), MARK)
    assert not is_marked(head(role="user"), MARK), "an agent that lists processes sees the marks of the others"
    assert not is_marked(head(source={"subagent": "review"}), MARK), "a helper thread repeats the instructions"
    assert not is_marked(b"", MARK)


def test_the_rollout_is_found_among_others(tmp_path: Path) -> None:
    now = datetime.now().astimezone()
    day = tmp_path / "sessions" / f"{now:%Y/%m/%d}"
    day.mkdir(parents=True)
    not_ours: dict[Path, int] = {}
    (day / "rollout-1.jsonl").write_bytes(head(text=mark("ffffffff")))
    assert find_rollout(tmp_path, MARK, now.timestamp(), not_ours) is None
    ours = day / "rollout-2.jsonl"
    ours.write_bytes(head()[:-40])
    assert find_rollout(tmp_path, MARK, now.timestamp(), not_ours) is None, "its head is not whole yet"
    ours.write_bytes(head())
    assert find_rollout(tmp_path, MARK, now.timestamp(), not_ours) == ours
    assert find_rollout(tmp_path, MARK, now.timestamp() + 3600, {}) is None, "older than the launch"
    assert find_rollout(tmp_path / "nowhere", MARK, now.timestamp(), {}) is None


@pytest.mark.parametrize("number", [-5, 10**400, True, 1.5, "7", None])
def test_a_number_of_tokens_that_makes_no_sense_is_none(number: Any) -> None:
    usage = {"input_tokens": number, "cached_input_tokens": number, "output_tokens": 3}
    assert read(STARTED, event("token_count", info={"total_token_usage": usage})) == TurnRecord(
        False, usage=recorded_tokens(0, 0, 3)
    )


def test_a_count_that_falls_is_no_negative_cost() -> None:
    lines = (STARTED, tokens(900, 50), DONE, event("task_started", turn_id="t2"), tokens(100, 60))
    assert read(*lines, since=3) == TurnRecord(False, usage=recorded_tokens(0, 0, 10))


@pytest.mark.parametrize(
    "text",
    ["", "3", "[]", "[" * 9000, '{"home": 3, "mark": "m", "launched": 1}', '{"home": "/", "mark": [], "launched": 1}',
     '{"home": "/", "mark": "m", "launched": "soon"}'],
)  # fmt: skip
def test_notes_of_a_launch_that_make_no_sense_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / NOTES).write_text(text)
    assert Notes.read(tmp_path) is None
