"""`quintet run` with agents that ask before they act: answered where that is wanted, else the user is told once."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.e2e.brains import TEST_PASS, Answer, RoleBrain
from tests.e2e.exchange import Reply, Request
from tests.e2e.rig import Cast, Rig, rig

pytestmark = pytest.mark.e2e

CASTS = {"codex": Cast(codex="0.166.0"), "claude_code": Cast(claude="2.1.325")}
ASK = {
    "PERMISSIONS": "ask",
    "START_AGENT": "tester",
    "POLL_SECONDS": "0.2",
    "CLEANUP_ON_EXIT": "1",
    # the tester stands for every agent that asks: it writes the file that the check looks for
    "GUARD": "off",
    "REQUIRE_ACTIONS": "0",
}
SECONDS = 90.0


class Asking(RoleBrain):
    """A tester whose two commands both need the user's leave."""

    def __init__(self) -> None:
        super().__init__({"test_result.md": [Answer(TEST_PASS, before=("echo 42 > answer.txt",))]})

    def __call__(self, request: Request) -> Reply:
        return replace(super().__call__(request), ask=True)


@contextmanager
def mailbox() -> Iterator[tuple[str, list[str]]]:
    """Where notifications go: its address, and what has come."""
    come: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            come.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", come
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_permissions_are_given_where_that_is_switched_on(cast: Cast) -> None:
    with rig(cast, Asking()) as run:
        code, said = run.run(**ASK, AUTO_ACCEPT_PERMISSIONS="1")
        assert code == 0, said
        accepted = [event["accepted"] for event in asked(run)]
        assert accepted in ([True] * 2, [True] * 3), "a yes that an agent did not hear is said again"
        assert (run.project / "answer.txt").read_text() == "42\n"


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_a_question_that_is_not_to_be_answered_is_told_once(cast: Cast) -> None:
    with rig(cast, Asking()) as run, mailbox() as (url, come):
        process = run.start(**ASK, NTFY_URL=url, NTFY_TOPIC="agents")
        try:
            wait(lambda: bool(asked(run)), process)
            with server_of(run) as http:
                tester = f"/terminals/{run.state['terminals']['tester']['id']}"
                # a question can be seen before all of its answers are drawn
                wait(lambda: bool(http.get(tester).json()["accept_key"]), process)
                assert http.get(tester).json()["status"] == "waiting_user_answer"
                assert not (run.project / "answer.txt").exists(), "it waits for an answer"
                say_yes_until_the_end(http, tester)
            said, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
        assert process.returncode == 0, said
        assert [event["accepted"] for event in asked(run)] == [False], "once in a turn, however often it asks"
        assert len([line for line in said.splitlines() if "tester asks for permission" in line]) == 1
        assert len([text for text in come if "tester asks for permission" in text]) == 1


def say_yes_until_the_end(http: httpx.Client, terminal: str) -> None:
    """As a user does: again after a while, because an agent may not listen in the first moment."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            found = http.get(terminal)
            if found.status_code == httpx.codes.OK and found.json()["status"] == "waiting_user_answer":
                http.post(f"{terminal}/key", params={"key": "accept"})
        except httpx.TransportError:
            return  # the run has ended, and its server with it
        time.sleep(1)


def wait(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def asked(run: Rig) -> list[dict[str, object]]:
    """The permissions that the journal tells of so far."""
    try:
        return [event for event in run.journal() if event["event"] == "permission_asked"]
    except (FileNotFoundError, ValueError):
        return []  # not begun yet, or read in the middle of a write


def server_of(run: Rig) -> httpx.Client:
    """A client of the run's own server."""
    found = json.loads((run.project / ".tmp/server.json").read_text())
    headers = {"Authorization": f"Bearer {found['token']}"}
    return httpx.Client(base_url=found["url"], headers=headers, trust_env=False, timeout=SECONDS)
