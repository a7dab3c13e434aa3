"""`quintet run` with agents that ask before they act: answered where that is wanted, else the user is told once."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.e2e.brains import TEST_PASS, Answer, RoleBrain
from tests.e2e.exchange import Reply, Request
from tests.e2e.rig import Cast, Rig, each_cli, rig

pytestmark = pytest.mark.e2e_all

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


@each_cli
def test_permissions_are_given_where_that_is_switched_on(cast: Cast) -> None:
    with rig(cast, Asking()) as run:
        code, said = run.run(**ASK, AUTO_ACCEPT_PERMISSIONS="1")
        assert code == 0, said
        accepted = [event["accepted"] for event in run.events("permission_asked")]
        assert accepted in ([True] * 2, [True] * 3), "a yes that an agent did not hear is said again"
        assert (run.project / "answer.txt").read_text() == "42\n"


@each_cli
def test_a_question_that_is_not_to_be_answered_is_told_once(cast: Cast) -> None:
    with rig(cast, Asking()) as run, mailbox() as (url, come):
        process = run.start(**ASK, NTFY_URL=url, NTFY_TOPIC="agents")
        run.until(lambda: run.events("permission_asked"), "the agent asks", process=process)
        with server_of(run) as http:
            tester = f"/terminals/{run.state['terminals']['tester']['id']}"
            # a question can be seen before all of its answers are drawn
            run.until(lambda: http.get(tester).json()["accept_key"], "the answers are drawn", process=process)
            assert http.get(tester).json()["status"] == "waiting_user_answer"
            assert not (run.project / "answer.txt").exists(), "it waits for an answer"
            run.until(lambda: say_yes(http, tester), "the run has ended")
        code, said = run.finish(process)
        assert code == 0, said
        told = [event["accepted"] for event in run.events("permission_asked")]
        assert told == [False], "once in a turn, however often it asks"
        assert len([line for line in said.splitlines() if "tester asks for permission" in line]) == 1
        assert len([text for text in come if "tester asks for permission" in text]) == 1


def say_yes(http: httpx.Client, terminal: str) -> bool:
    """Accept what is asked, as a user does; return whether the run has ended, and its server with it."""
    try:
        found = http.get(terminal)
        if found.status_code == httpx.codes.OK and found.json()["status"] == "waiting_user_answer":
            http.post(f"{terminal}/key", params={"key": "accept"})
    except httpx.TransportError:
        return True
    time.sleep(1)  # an agent may not listen in the first moment
    return False


def server_of(run: Rig) -> httpx.Client:
    """A client of the run's own server."""
    found = json.loads((run.project / ".tmp/server.json").read_text())
    headers = {"Authorization": f"Bearer {found['token']}"}
    return httpx.Client(base_url=found["url"], headers=headers, trust_env=False, timeout=SECONDS)
