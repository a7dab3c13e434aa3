"""One line of words for every event."""

import io
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from rich.console import Console

from quintet.loop import journal
from quintet.loop.record.journal_file import Journal
from quintet.watch.console.live_view import LiveFrame
from quintet.watch.dashboard.run_json import run_json
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.folders import JournalTail
from tests.watch.events import started, write

KINDS = get_args(get_args(journal.Event)[0])
SAMPLES: dict[str, Any] = {
    "when": "start",
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
    "turn": 2,
    "command": "make test",
    "exit_code": 2,
    "last": True,
    "number": 1,
    "accepted": False,
    "text": "the text",
    "kind": "server_error",
    "pause": 2.0,
    "until": "2026-01-01T00:00:00+00:00",
    "gate": "spec",
    "by": "ann",
    "notes": "the notes",
    "status": "PASS",
    "host": "registry.example",
    "port": 443,
    "times": 3,
    "allow": "SANDBOX_DOMAINS=api.example,registry.example:443",
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
        (sample(journal.ReviewJudged), ["↺", "REVISE", "the reason"]),
        (sample(journal.ReviewJudged, verdict=""), ["no verdict"]),
        (sample(journal.ReviewJudged, approved=True), ["APPROVED", "artifact"]),
        (sample(journal.ReviewsUsedUp), ["WARNING", "NOT APPROVED", "3"]),
        (sample(journal.RoundFailed), ["last"]),
        (sample(journal.RoundFailed, last=False), ["programmer"]),
        (sample(journal.GuardReleased), ["warning", "31"]),
        (sample(journal.Reminded), ["reminder 1"]),
        (sample(journal.PermissionAsked), ["warning", "aa00bb11"]),
        (sample(journal.StatusDoubted, status="processing"), ["warning", "tester", "the text", "counts as processing"]),
        (sample(journal.PermissionAsked, accepted=True), ["answered yes"]),
        (
            sample(journal.PermissionAsked, accepted=False, reason="", question=True),
            ["warning", "only you can answer", "aa00bb11"],
        ),
        (
            sample(journal.HostRefused),
            ["warning", "registry.example:443", "to tester 3 times", "SANDBOX_DOMAINS=api.ex"],
        ),
        (sample(journal.HostRefused, role="", times=1), ["refused registry.example:443 to a check; to allow it"]),
        (sample(journal.ServerFault), ["warning: the text"]),
        (sample(journal.Warned), ["warning: the text"]),
        (sample(journal.Verified), ["make test", "exit code 2"]),
        (sample(journal.RunStopped), ["the reason", "start it again"]),
        (sample(journal.RunResumed), ["resumes", "1-1-tester"]),
        (sample(journal.RunFinished), ["PASS", "round 2"]),
        (sample(journal.ReplyMissed), ["warning", "tester", "no reply"]),
    ],
)
def test_what_a_line_must_say(event: Any, words: list[str]) -> None:
    line = line_for(event)
    assert [word for word in words if word not in line] == []


class Replaced(BaseModel):
    """A kind of event that this room has no words for yet."""

    at: str = "2026-01-02T03:04:05+00:00"
    event: str = "terminal_replaced"
    role: str = "programmer"
    attempt: int = 2
    reason: str = "its process was gone"
    note: str = ""


def test_an_event_without_words_of_its_own_is_told_by_its_fields() -> None:
    line = line_for(Replaced())  # type: ignore[arg-type]
    assert line == "terminal replaced: programmer, attempt 2, its process was gone"


def test_an_event_of_a_later_version_is_shown_everywhere(tmp_path: Path) -> None:
    folder = write(tmp_path / ".tmp" / "r", started())
    with (folder / "journal.jsonl").open("a") as file:
        file.write(Replaced().model_dump_json() + "\n" + '{"event": "bare", "at": "x"}\n{"event": 3, "at": "x"}\n')
    tail = JournalTail(folder / "journal.jsonl")
    lines = [line_for(event) for event in tail.read_new()]
    assert len(lines) == len(started()) + 2
    assert lines[-2:] == ["terminal replaced: programmer, attempt 2, its process was gone", "bare."]
    picture = LiveFrame(tail.run, events=[*Journal(folder / "journal.jsonl").read()])
    console = Console(file=io.StringIO(), width=100, height=40, record=True)
    console.print(picture.draw(100, 40))
    assert "terminal replaced: programmer" in console.export_text()
    assert "terminal replaced" in json.dumps(run_json(tail.run, "", picture.events))
