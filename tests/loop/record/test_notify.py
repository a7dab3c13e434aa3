"""Notifications to an ntfy topic on loopback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quintet.config import Settings
from quintet.loop.journal import Noted, PermissionAsked, ReviewsUsedUp, RunFinished, RunStopped
from quintet.loop.record.notify import Notifier
from quintet.roles import PEER_ANALYST, PROGRAMMER, TESTER
from tests.stub.project import Project, project_in, turns
from tests.stub.replies import FAIL, PROGRAMMER_SUMMARY
from tests.stub.server import Turn


class Topic:
    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []
        self.titles: set[str | None] = set()
        self.url = ""
        self.answer = 200


@contextmanager
def listening() -> Iterator[Topic]:
    topic = Topic()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            topic.messages.append((self.path, text))
            topic.titles.add(self.headers["Title"])
            self.send_response(topic.answer)
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
def project(tmp_path: Path, topic: Topic) -> Iterator[Project]:
    with project_in(tmp_path, "prüf") as made:
        made.env |= {"NTFY_URL": topic.url, "NTFY_TOPIC": "my topic"}
        yield made


def test_the_end_of_a_run_is_told(project: Project, topic: Topic) -> None:
    assert project.run().code == 0
    assert topic.messages == [("/my%20topic", "prüf: PASS after round 1")]
    assert topic.titles == {"Quintet"}


def test_a_fail_and_reviews_used_up_are_told(project: Project, topic: Topic) -> None:
    project.stub.script[TESTER] = turns(FAIL)
    project.stub.script[PEER_ANALYST] = turns("REVIEW_RESULT: REVISE")
    assert project.run(MAX_ROUNDS="1", MAX_REVIEW_CYCLES="1").code == 1
    texts = sorted(text for _, text in topic.messages)
    assert texts == ["prüf: FAIL after round 1", "prüf: the analyst phase goes on without approval after 1 review"]


def test_a_question_and_the_stop_are_told_once_each(project: Project, topic: Topic) -> None:
    project.stub.script[PROGRAMMER] = [Turn(PROGRAMMER_SUMMARY, asks=True)]
    assert project.run(RESPONSE_TIMEOUT="3").code == 1
    texts = [text for _, text in topic.messages]
    assert len(texts) == 2
    assert "prüf: programmer asks for permission in terminal 00000003" in texts
    assert any(text.startswith("prüf: stopped: programmer") for text in texts)


def test_without_a_topic_nothing_is_sent(project: Project, topic: Topic) -> None:
    assert project.run(NTFY_TOPIC=None).code == 0
    assert topic.messages == []


def test_a_failing_topic_is_only_a_warning(project: Project, topic: Topic) -> None:
    topic.answer = 403
    done = project.run()
    assert done.code == 0
    assert "warning: notification not sent" in done.out
    assert "Traceback" not in done.text


def test_a_topic_that_is_not_there_is_only_a_warning(project: Project) -> None:
    done = project.run(NTFY_URL="http://127.0.0.1:9")
    assert done.code == 0
    assert "warning: notification not sent" in done.out


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (RunFinished(status="PASS", round=2), True),
        (RunStopped(reason="x"), True),
        (PermissionAsked(role="tester", terminal="1", accepted=False), True),
        (PermissionAsked(role="tester", terminal="1", accepted=False, question=True), True),
        (PermissionAsked(role="tester", terminal="1", accepted=True), False),
        (ReviewsUsedUp(phase="analyst", round=1, cycles=3), True),
        (Noted(text="x"), False),
    ],
)
def test_what_is_worth_telling(topic: Topic, tmp_path: Path, event: Any, told: bool) -> None:
    warnings: list[str] = []
    settings = replace(Settings(), wd=tmp_path, ntfy_topic="t", ntfy_url=topic.url)
    notifier = Notifier(settings, warnings.append)
    notifier(event)
    notifier.flush()
    assert len(topic.messages) == int(told)
    assert warnings == []
