"""One line of words for every event."""

from typing import Any, get_args

import pytest

from quintet.loop import journal
from quintet.watch.lines import line_for

KINDS = get_args(get_args(journal.Event)[0])
SAMPLES: dict[str, Any] = {
    "run_id": "r1",
    "wd": "/wd",
    "start_agent": "analyst",
    "step": "1-1-tester",
    "role": "tester",
    "terminal": "aa00bb11",
    "provider": "codex",
    "seconds": 31.2,
    "round": 2,
    "cycle": 1,
    "characters": 512,
    "file": "001-tester.md",
    "source": "file",
    "phase": "analyst",
    "verdict": "REVISE",
    "approved": False,
    "evidence": ("artifact",),
    "reason": "the reason",
    "cycles": 3,
    "command": "make test",
    "exit_code": 2,
    "last": True,
    "number": 1,
    "accepted": False,
    "text": "the text",
    "kind": "server_error",
    "pause": 2.0,
    "until": "2026-01-01T00:00:00+00:00",
    "status": "PASS",
}


def sample(kind: type[Any], **changed: Any) -> Any:
    names = set(kind.model_fields) - {"event", "at"}
    return kind(**({name: SAMPLES[name] for name in names if name in SAMPLES} | changed))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_has_words_of_its_own(kind: type[Any]) -> None:
    event = sample(kind)
    line = line_for(event)
    assert line
    assert line != event.event, "the bare name of an event is no sentence"
    assert "\n" not in line


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (sample(journal.PromptSent), ["round 2", "cycle 1", "tester", "512"]),
        (sample(journal.ReplyTaken, source="screen"), ["screen", "001-tester.md"]),
        (sample(journal.ReviewJudged), ["REVISE", "not approved", "the reason"]),
        (sample(journal.ReviewJudged, verdict=""), ["no verdict"]),
        (sample(journal.ReviewJudged, approved=True), ["APPROVED", "artifact"]),
        (sample(journal.ReviewsUsedUp), ["WARNING", "NOT APPROVED", "3"]),
        (sample(journal.RoundFailed), ["last"]),
        (sample(journal.RoundFailed, last=False), ["programmer"]),
        (sample(journal.GuardReleased), ["warning", "31"]),
        (sample(journal.Reminded), ["reminder 1"]),
        (sample(journal.PermissionAsked), ["warning", "aa00bb11"]),
        (sample(journal.PermissionAsked, accepted=True), ["answered yes"]),
        (sample(journal.ServerFault), ["warning: the text"]),
        (sample(journal.Warned), ["warning: the text"]),
        (sample(journal.Verified), ["make test", "exit code 2"]),
        (sample(journal.RunStopped), ["the reason", "start again"]),
        (sample(journal.RunResumed), ["goes on", "1-1-tester"]),
        (sample(journal.RunFinished), ["PASS", "round 2"]),
    ],
)
def test_what_a_line_must_say(event: Any, words: list[str]) -> None:
    line = line_for(event)
    assert [word for word in words if word not in line] == []
