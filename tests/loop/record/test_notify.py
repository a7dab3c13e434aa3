"""Notifications: an ntfy topic and a webhook on loopback, and a command."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quintet.config import Settings
from quintet.loop.journal import (
    LimitReached,
    Noted,
    PermissionAsked,
    ReviewsUsedUp,
    RoundFailed,
    RunFinished,
    RunStarted,
    RunStopped,
)
from quintet.loop.record import notify
from quintet.loop.record.notify import SIGNATURE, Notifier
from quintet.roles import PEER_ANALYST, PROGRAMMER, TESTER
from tests.stub.project import turns, until
from tests.stub.replies import FAIL, PROGRAMMER_SUMMARY
from tests.stub.server import Turn
from tests.stub.simulated import SimulatedProject, simulated_project


class Topic:
    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []
        self.titles: set[str | None] = set()
        self.signatures: list[str | None] = []
        self.url = ""
        self.answer = 200
        self.refuse = 0
        """requests that are answered with 503 before the others"""
        self.hang: threading.Event | None = None
        """requests wait for it"""
        self.endless = False
        """whether the body of an answer has no end"""


@contextmanager
def listening() -> Iterator[Topic]:
    topic = Topic()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if topic.hang is not None:
                topic.hang.wait(60)
            topic.refuse -= 1
            if topic.refuse >= 0:
                self.send_error(503)
                return
            topic.messages.append((self.path, text))
            topic.titles.add(self.headers["Title"])
            topic.signatures.append(self.headers[SIGNATURE])
            self.send_response(topic.answer)
            if topic.endless:
                self.end_headers()
                with suppress(OSError):
                    while True:
                        self.wfile.write(b"x" * 65_536)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    topic.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield topic
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def topic() -> Iterator[Topic]:
    with listening() as made:
        yield made


@pytest.fixture
def project(tmp_path: Path, topic: Topic) -> Iterator[SimulatedProject]:
    with simulated_project(tmp_path, "prüf") as made:
        made.env |= {"NTFY_URL": topic.url, "NTFY_TOPIC": "my topic"}
        yield made


def test_the_end_of_a_run_is_told(project: SimulatedProject, topic: Topic) -> None:
    assert project.run().code == 0
    assert topic.messages == [("/my%20topic", "prüf: PASS after round 1")]
    assert topic.titles == {"Quintet"}


def test_a_fail_and_reviews_used_up_are_told(project: SimulatedProject, topic: Topic) -> None:
    project.stub.script[TESTER] = turns(FAIL)
    project.stub.script[PEER_ANALYST] = turns("REVIEW_RESULT: REVISE")
    assert project.run(MAX_ROUNDS="1", MAX_REVIEW_CYCLES="1").code == 1
    texts = sorted(text for _, text in topic.messages)
    assert texts == ["prüf: FAIL after round 1", "prüf: the analyst phase goes on without approval after 1 review"]


def test_a_question_and_the_stop_are_told_once_each(project: SimulatedProject, topic: Topic) -> None:
    project.stub.script[PROGRAMMER] = [Turn(PROGRAMMER_SUMMARY, asks=True)]
    assert project.run(RESPONSE_TIMEOUT="3").code == 1
    texts = [text for _, text in topic.messages]
    assert len(texts) == 2
    assert "prüf: programmer asks for permission in terminal 00000003" in texts
    assert any(text.startswith("prüf: stopped: programmer") for text in texts)


def test_without_a_topic_nothing_is_sent(project: SimulatedProject, topic: Topic) -> None:
    assert project.run(NTFY_TOPIC=None).code == 0
    assert topic.messages == []


@pytest.mark.parametrize("there", [True, False])
def test_a_topic_that_refuses_or_is_not_there_is_only_a_warning(
    project: SimulatedProject, topic: Topic, there: bool
) -> None:
    topic.answer = 403
    done = project.run(NTFY_URL=topic.url if there else "http://127.0.0.1:9")
    assert done.code == 0
    assert "warning: notification not sent" in done.out
    assert "Traceback" not in done.text


def tell(event: Any, wd: Path, **settings: str) -> list[str]:
    """Let a notifier tell of an event; what it warns of."""
    warnings: list[str] = []
    notifier = Notifier(replace(Settings(), wd=wd, **settings), "run-1", warnings.append)  # type: ignore[arg-type]
    notifier(event)
    notifier.flush()
    return warnings


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (RunFinished(status="PASS", round=2), True),
        (RunStopped(reason="x"), True),
        (PermissionAsked(role="tester", terminal="1", accepted=False), True),
        (PermissionAsked(role="tester", terminal="1", accepted=False, question=True), True),
        (PermissionAsked(role="tester", terminal="1", accepted=True), False),
        (ReviewsUsedUp(phase="analyst", round=1, cycles=3), True),
        (RoundFailed(round=1, last=False), True),
        (RoundFailed(round=3, last=True), False),
        (LimitReached(step="1", role="tester", text="x", until="14:00"), True),
        (RunStarted(run_id="r", wd="/w", start_agent="analyst"), False),
        (Noted(text="x"), False),
    ],
)
def test_what_is_worth_telling(topic: Topic, tmp_path: Path, event: Any, told: bool) -> None:
    assert tell(event, tmp_path, ntfy_topic="t", ntfy_url=topic.url) == []
    assert len(topic.messages) == int(told)


@pytest.fixture
def told(tmp_path: Path, topic: Topic) -> Iterator[tuple[Notifier, list[str]]]:
    """A notifier for a webhook, and its warnings."""
    (tmp_path / "secret").write_text("a secret\n")
    settings = replace(
        Settings(), wd=tmp_path, notify_webhook=f"{topic.url}/hook?key=1", notify_secret_file=str(tmp_path / "secret")
    )
    warnings: list[str] = []
    notifier = Notifier(settings, "run-1", warnings.append)
    yield notifier, warnings
    notifier.flush()


DONE = RunFinished(status="PASS", round=2, at="2026-01-01T00:00:00Z")


def test_a_webhook_gets_signed_json(told: tuple[Notifier, list[str]], topic: Topic, tmp_path: Path) -> None:
    notifier, warnings = told
    notifier(RunStarted(run_id="run-1", wd="/w", start_agent="analyst", task_file="tasks/a.md"))
    notifier(DONE)
    notifier.flush()
    assert [path for path, _ in topic.messages] == ["/hook?key=1"] * 2
    first, last = (json.loads(body) for _, body in topic.messages)
    assert (first["event"], first["text"]) == ("started", "started with a.md")
    assert last == {
        "event": "finished",
        "text": "PASS after round 2",
        "project": tmp_path.name,
        "folder": str(tmp_path),
        "run": "run-1",
        "at": "2026-01-01T00:00:00Z",
        "status": "PASS",
        "link": "",
    }
    body = topic.messages[-1][1].encode()
    assert topic.signatures[-1] == "sha256=" + hmac.new(b"a secret", body, hashlib.sha256).hexdigest()
    assert warnings == []


def test_a_webhook_that_fails_for_a_moment_is_tried_again(
    told: tuple[Notifier, list[str]], topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "PAUSES", (0.0, 0.0, 0.0))
    notifier, warnings = told
    topic.refuse = 3
    notifier(DONE)
    until(lambda: topic.messages)
    notifier.flush()
    assert len(topic.messages) == 1
    assert warnings == []


def test_the_end_of_a_run_does_not_wait_for_the_pause_before_another_try(
    told: tuple[Notifier, list[str]], topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "PAUSES", (3600.0,))
    notifier, warnings = told
    topic.refuse = 1
    notifier(DONE)
    until(lambda: topic.refuse < 1)
    notifier.flush()
    assert len(topic.messages) == 1
    assert warnings == []


def test_an_answer_without_an_end_is_not_read(told: tuple[Notifier, list[str]], topic: Topic) -> None:
    notifier, warnings = told
    topic.endless = True
    notifier(DONE)
    notifier.flush()
    assert len(topic.messages) == 1
    assert warnings == []


def test_a_redirect_is_not_followed(told: tuple[Notifier, list[str]], topic: Topic) -> None:
    notifier, warnings = told
    topic.answer = 307
    notifier(DONE)
    notifier.flush()
    (warning,) = warnings
    assert warning.endswith(": it answered 307 Temporary Redirect")
    assert "key=1" not in warning


def test_a_webhook_that_hangs_is_a_warning_and_holds_up_nothing_else(
    topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "_FLUSH_SECONDS", 0.2)
    with listening() as slow:
        slow.hang = threading.Event()
        warnings: list[str] = []
        settings = replace(Settings(), wd=tmp_path, notify_webhook=slow.url, ntfy_topic="t", ntfy_url=topic.url)
        notifier = Notifier(settings, "run-1", warnings.append)
        notifier(DONE)
        until(lambda: bool(topic.messages))
        notifier.flush()
        slow.hang.set()
    assert warnings == [f"1 notification not sent in time to the webhook at {slow.url.removeprefix('http://')}"]


def test_a_command_gets_json_on_its_standard_input(tmp_path: Path) -> None:
    assert tell(DONE, tmp_path, notify_cmd="cat >> told") == []
    assert json.loads((tmp_path / "told").read_text())["text"] == "PASS after round 2"


def test_a_command_that_fails_is_only_a_warning(tmp_path: Path) -> None:
    assert tell(DONE, tmp_path, notify_cmd="echo no; exit 3") == [
        "notification not sent to NOTIFY_CMD: exit code 3: no"
    ]


def test_a_missing_secret_is_a_warning_and_nothing_goes_out_unsigned(topic: Topic, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    warnings = tell(DONE, tmp_path, notify_webhook=topic.url, notify_secret_file=gone)
    assert topic.messages == []
    assert warnings == [
        f"notification not sent to the webhook at {topic.url.removeprefix('http://')}: "
        f"{gone}: cannot be read (No such file or directory)"
    ]
