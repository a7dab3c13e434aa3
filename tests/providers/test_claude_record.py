"""What Claude Code's hooks and its transcript tell, read line by line."""

import json
import time
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.api.status import FailureKind
from quintet.providers.base import RecordedFailure, TurnRecord
from quintet.providers.claude_code.launch import HOOKS_FILE
from quintet.providers.claude_code.provider import PROVIDER
from quintet.providers.claude_code.record import Hooks, TranscriptTurn, read_hook, read_transcript
from quintet.providers.editor import OWN
from quintet.tokens import TokenCount, recorded_tokens


def hook(event: str, **more: Any) -> bytes:
    return json.dumps({"hook_event_name": event, "transcript_path": "/t.jsonl", **more}).encode()


def asked(prompt: str = "hello", prompt_id: str = "p1") -> bytes:
    return hook("UserPromptSubmit", prompt=prompt, prompt_id=prompt_id)


def stopped(message: str = "Done.", prompt_id: str = "p1", tasks: tuple[Any, ...] = ()) -> bytes:
    return hook("Stop", last_assistant_message=message, prompt_id=prompt_id, background_tasks=tasks)


def fold(*lines: bytes) -> Hooks:
    return reduce(lambda seen, numbered: read_hook(seen, *numbered), enumerate(lines), Hooks())


def read(*lines: bytes, since: int = 0, spending: TranscriptTurn = TranscriptTurn()) -> TurnRecord | None:  # noqa: B008 - frozen
    return fold(*lines).since(since, spending)


NOTICE = asked("<task-notification>\n<task-id>b1</task-id>", "own")
OVER = TurnRecord(ended=True, last_message="Done.", final=False)
"""as long as nothing but the hook tells of it"""


def test_a_turn_begins_and_ends_with_its_exact_message() -> None:
    assert read() is None
    assert read(stopped()) is None
    assert read(asked()) == TurnRecord(ended=False)
    assert read(asked(), b"", stopped()) == OVER
    assert read(asked(), stopped(), since=1) is None


@pytest.mark.parametrize(
    ("task", "ended"),
    [
        ({"type": "shell", "status": "running"}, True),
        ({"type": "subagent", "status": "running"}, False),
        ({"type": "subagent", "status": "completed"}, True),
        ("odd", True),
    ],
)
def test_an_agent_that_waits_for_its_helpers_is_not_done(task: Any, ended: bool) -> None:
    found = read(asked(), stopped(tasks=(task,)))
    assert found is not None
    assert found.ended is ended


def test_what_claude_code_says_to_itself_is_no_prompt() -> None:
    assert read(asked(), stopped(), NOTICE) == TurnRecord(ended=False), "it is at work again"
    assert read(asked(), stopped(), NOTICE, since=2) is None
    assert read(asked(), stopped(), NOTICE, stopped("Noted.", "own")) == TurnRecord(
        ended=True, last_message="Noted.", final=False
    )


@pytest.mark.parametrize(
    ("prompt", "own"),
    [
        ("<task-notification>\n<task-id>b1</task-id>\n</task-notification>", True),
        ("<system-reminder>\nNot from the user:\n<task-notification>\n<task-id>b1</task-id>", True),
        ('<teammate-message teammate_id="lead">go</teammate-message>', True),
        ("<message>Fix it.</message>", False),
        ("<system-reminder>Fix it.</system-reminder>", False),
        ("<commit-message>Fix it</commit-message>", False),
        ("<task-notification> is a tag: where does it come from?", False),
        ("<notification>", False),
    ],
)
def test_a_prompt_may_begin_with_a_tag(prompt: str, own: bool) -> None:
    assert (read(asked(), stopped(), asked(prompt, "p2"), since=2) is None) is own


def test_a_prompt_that_waits_behind_another_turn_is_not_done_with_it() -> None:
    waiting = (asked(), stopped(), NOTICE, asked("next", "own"))
    assert read(*waiting, since=3) == TurnRecord(ended=False)
    behind = (*waiting, stopped("Noted.", "own"))
    assert read(*behind, since=3) == TurnRecord(ended=False)
    assert read(*behind, stopped("Next.", "p2"), since=3) == TurnRecord(ended=True, last_message="Next.", final=False)


def test_a_prompt_that_another_turn_has_dealt_with_is_done() -> None:
    behind = (asked(), asked("next"), stopped("Both."))
    assert read(*behind, since=1) == TurnRecord(ended=False)
    absorbed = TranscriptTurn(prompt="p1", absorbed=True)
    assert read(*behind, since=1, spending=absorbed) == TurnRecord(ended=True, last_message="Both.")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ({"error": "rate_limit", "last_assistant_message": "You've hit your limit · resets 3pm"},
         "usage limit: You've hit your limit · resets 3pm"),
        ({"error": "rate_limit", "last_assistant_message": "API Error: Request rejected (429) · Too many requests"},
         "rate limit: API Error: Request rejected (429) · Too many requests"),
        ({"error": "rate_limit", "last_assistant_message":
          "API Error: Server is temporarily limiting requests (not your usage limit) · Too many requests"},
         "rate limit: API Error: Server is temporarily limiting requests (not your usage limit) · Too many requests"),
        ({"error": "rate_limit", "last_assistant_message": "You've reached your weekly limit"},
         "usage limit: You've reached your weekly limit"),
        ({"error": "rate_limit", "last_assistant_message": "Claude usage limit reached."},
         "usage limit: Claude usage limit reached."),
        ({"error": "rate_limit", "last_assistant_message": "5-hour limit reached ∙ resets 12am"},
         "usage limit: 5-hour limit reached ∙ resets 12am"),
        ({"error": "rate_limit", "last_assistant_message": "You're out of extra usage"},
         "usage limit: You're out of extra usage"),
        ({"error": "authentication_failed", "last_assistant_message": "Please run /login"}, "login: Please run /login"),
        ({"error": "server_error", "last_assistant_message": "API Error: 500"}, "server error: API Error: 500"),
        ({"error": "invalid_request", "error_details": "400 bad"}, "400 bad"),
        ({"error": "billing_error", "last_assistant_message": "Credit is too low"}, "Credit is too low"),
        ({"error": {"type": "overloaded"}}, "server error: overloaded"),
        ({}, "the turn has failed"),
        ({"error": "server_error", "last_assistant_message": "API Error: Connection dropped (ECONNRESET)."},
         "connection: API Error: Connection dropped (ECONNRESET)."),
    ],
)  # fmt: skip
def test_a_failed_turn_has_its_reason(failure: dict[str, Any], reason: str) -> None:
    found = read(asked(), hook("StopFailure", prompt_id="p1", **failure))
    assert found is not None
    assert (found.ended, str(found.failure)) == (True, reason)
    assert (found.failure is not None and found.failure.resets_at is not None) == ("resets" in reason)


def test_a_rate_limit_may_say_when_to_try_again() -> None:
    failed = hook("StopFailure", prompt_id="p1", error="rate_limit", error_details="429 retry-after: 17")
    found = read(asked(), failed)
    assert found is not None
    assert found.failure is not None
    assert found.failure.kind is FailureKind.RATE_LIMIT
    assert found.failure.resets_at is not None
    assert 0 < found.failure.resets_at - time.time() <= 17


def test_an_interrupted_turn_is_over() -> None:
    assert read(asked(), spending=TranscriptTurn(prompt="p1", interrupted=True)) == TurnRecord(
        ended=True, failure=RecordedFailure(FailureKind.INTERRUPTED, "interrupted")
    )


@pytest.mark.parametrize("line", [b"", b"{", b"null", b"[]", b"\xff", b"[" * 9000, b'{"hook_event_name": 3}'])
def test_what_is_torn_or_foreign_changes_nothing(line: bytes) -> None:
    assert read(asked(), line, stopped()) == OVER
    assert read_transcript(TranscriptTurn("p1"), 0, line) == TranscriptTurn("p1")


@given(st.recursive(st.none() | st.integers() | st.text(max_size=8), lambda inner: st.dictionaries(
    st.sampled_from(["hook_event_name", "message", "type", "usage", "content", "background_tasks", "attachment"]), inner
) | st.lists(inner, max_size=3), max_leaves=12))  # fmt: skip
def test_no_line_is_fatal(value: Any) -> None:
    line = json.dumps(value).encode()
    read_hook(Hooks(begun=0), 0, line)
    read_transcript(TranscriptTurn(), 0, line + b'"user"')
    read_transcript(TranscriptTurn(), 0, json.dumps({"type": "assistant", "message": value}).encode())


def entry(kind: str, **more: Any) -> bytes:
    return json.dumps({"type": kind, **more}).encode()


def said(name: str, **usage: int) -> bytes:
    return entry("assistant", message={"id": name, "role": "assistant", "usage": usage})


def spend(*lines: bytes) -> TranscriptTurn:
    return reduce(lambda seen, line: read_transcript(seen, 0, line), lines, TranscriptTurn())


TYPED = entry("user", promptId="p1", message={"role": "user", "content": "hello"})
RESULT = entry("user", promptId="p1", message={"role": "user", "content": [{"type": "tool_result", "content": "hi"}]})


def test_each_message_is_counted_once() -> None:
    one = said("m1", input_tokens=100, cache_creation_input_tokens=10, cache_read_input_tokens=5, output_tokens=1)
    again = said("m1", input_tokens=100, cache_creation_input_tokens=10, cache_read_input_tokens=5, output_tokens=30)
    two = said("m2", input_tokens=200, output_tokens=4)
    assert spend(TYPED, one, again, RESULT, two).usage("p1") == recorded_tokens(315, 5, 34)
    assert spend(TYPED, one).usage("p2") is None
    assert spend(TYPED, two, TYPED).usage("p1") is None, "a new turn begins at nothing"


def test_the_last_message_of_older_releases_stands_in_the_transcript() -> None:
    parts = [
        entry("assistant", message={"id": "m1", "usage": {}, "content": [{"type": "text", "text": text}]})
        for text in "ab"
    ]
    assert spend(TYPED, said("m0"), *parts).said == "a\nb"
    assert read(asked(), hook("Stop", prompt_id="p1"), spending=spend(TYPED, *parts)) == TurnRecord(
        ended=True, last_message="a\nb", usage=TokenCount(), final=False
    )


SENT_BACK = entry("user", promptId="p1", isMeta=True, message={"role": "user", "content": "Stop hook feedback:\nno"})
TIMED = entry("system", subtype="turn_duration", durationMs=5)


def test_a_turn_that_a_hook_of_the_users_does_not_let_end_is_running() -> None:
    sent_back = (TYPED, said("m1"), SENT_BACK, SENT_BACK)
    for transcript in (sent_back, (*sent_back, said("m2"))):
        found = read(asked(), stopped(), spending=spend(*transcript))
        assert found is not None
        assert not found.ended
    again = (asked(), stopped(), stopped("After all."))
    for spending in (spend(*sent_back, said("m2")), spend(TYPED, said("m1"))):
        found = read(*again, spending=spending)
        assert found is not None
        assert (found.ended, found.last_message) == (True, "After all.")
    found = read(*again, spending=spend(*sent_back, said("m2"), SENT_BACK))
    assert found is not None
    assert not found.ended, "a second time"
    found = read(asked("next", "p2"), stopped("Next.", "p2"), spending=spend(*sent_back))
    assert found is not None
    assert found.ended, "what is known of another turn does not count"


def test_an_end_is_final_when_the_transcript_has_its_time() -> None:
    spoken = (TYPED, said("m1"))
    for transcript, final in (
        (spoken, False),
        ((*spoken, TIMED), True),
        ((*spoken, TIMED, said("m2")), False),
        ((*spoken, TIMED, SENT_BACK), None),
    ):
        found = read(asked(), stopped(), spending=spend(*transcript))
        assert found is not None
        assert (found.final if found.ended else None) is final


def test_an_interruption_stands_in_the_transcript() -> None:
    note = entry(
        "user", message={"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    )
    assert spend(TYPED, note).interrupted
    assert not spend(TYPED, note, TYPED).interrupted


def test_a_background_task_of_no_known_type_is_waited_for() -> None:
    tasks: tuple[Any, ...] = ({"type": ["shell"], "status": "running"}, {"type": {}, "status": []})
    assert read(asked(), stopped(tasks=tasks)) == TurnRecord(ended=False)


@pytest.mark.parametrize("number", [-5, 10**400, True, 1.5, "7", None])
def test_a_number_of_tokens_that_makes_no_sense_is_none(number: Any) -> None:
    line = said("m1", input_tokens=number, output_tokens=3)
    assert read_transcript(TranscriptTurn("p1"), 0, line).usage("p1") == recorded_tokens(0, 0, 3)


def test_what_was_read_before_is_not_changed_by_another_reading() -> None:
    begin = TranscriptTurn("p1")
    for _ in range(2):
        found = read_transcript(read_transcript(begin, 0, said("m1")), 1, said("m2"))
        assert list(found.messages) == ["m1", "m2"]
    assert begin == TranscriptTurn("p1")


@pytest.mark.parametrize(
    ("lines", "typed"),
    [
        ((asked(), stopped()), False),
        ((asked(), stopped(), NOTICE), False),
        ((asked(), asked("theirs", "p1")), True),
        ((asked(), stopped(), asked("theirs", "p2"), stopped("Yes.", "p2")), True),
    ],
)
def test_a_prompt_that_somebody_types_after_ours_is_seen(tmp_path: Path, lines: tuple[bytes, ...], typed: bool) -> None:
    (tmp_path / OWN).mkdir()
    (tmp_path / HOOKS_FILE).write_bytes(b"".join(line + b"\n" for line in lines))
    found = PROVIDER.read_record(tmp_path, 0)
    assert found
    assert found.typed is typed
    after = PROVIDER.record_position(tmp_path)
    with (tmp_path / HOOKS_FILE).open("ab") as file:
        file.write(asked("ours again", "p3") + b"\n")
    again = PROVIDER.read_record(tmp_path, after)
    assert again
    assert again.typed is False
