"""CAO's own command line against `quintet serve`: it knows no token, so the server is opened for it."""

import subprocess

import pytest

from tests.e2e.cao import AGENT_STORE
from tests.e2e.desk import served
from tests.e2e.install import ensure_cao
from tests.e2e.orders import ordered, orders
from tests.e2e.rig import CODEX, QUINTET, Rig, rig

pytestmark = pytest.mark.e2e_all

SECONDS = 120.0
SESSION = "cao-by-cao"
ANSWER = "Hello from the model."


def cao(run: Rig, url: str, *words: str) -> str:
    """One command; what it said."""
    host, port = url.removeprefix("http://").split(":")
    done = subprocess.run(
        [str(ensure_cao().with_name("cao")), *words],
        env={**run.env, "CAO_API_HOST": host, "CAO_API_PORT": port},
        cwd=run.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def launch(run: Rig, url: str) -> str:
    where = ["--working-directory", str(run.project), "--session-name", SESSION]
    agent = ["--agents", "programmer", "--provider", "codex", "--headless", "--yolo"]
    return cao(run, url, "launch", *agent, *where, f"Say hello. {orders({'text': ANSWER})}")


def test_caos_command_line_works_with_no_token_and_only_so() -> None:
    with rig(CODEX, ordered) as run:
        export = [*QUINTET, "profiles", "export", str(run.home / AGENT_STORE)]
        subprocess.run(export, env=dict(run.env), check=True, capture_output=True, timeout=SECONDS)
        with served(run) as url:
            said = launch(run, url)
            assert "401" in said, said
        with served(run, "--no-token") as url:
            said = launch(run, url)
            assert ANSWER in said, said
            assert SESSION in cao(run, url, "session", "list")
            assert "completed" in cao(run, url, "session", "status", SESSION).lower()
            cao(run, url, "shutdown", "--session", SESSION)
            assert SESSION not in cao(run, url, "session", "list")
