"""The harness itself: real CAO, real Codex, a scripted model; no code of Quintet takes part."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.e2e.brains import ANALYST_APPROVED, ANALYST_REVISE, ANALYST_SUMMARY, Answer, RoleBrain
from tests.e2e.cao import Cao, cao_server
from tests.e2e.install import ensure_codex
from tests.e2e.model import ScriptedModel
from tests.e2e.processes import is_running, living_in, mentioning

pytestmark = pytest.mark.e2e

CODEX = "0.149.0"
PROFILE = "harness_agent"
TURN_SECONDS = 60.0
LOOK = 0.1

# What typing into a terminal is known to spoil.
AWKWARD = """\
/not a command
!neither is this
\ttab, `backticks`, "double" and 'single' quotes, $HOME and \\backslashes\\
emoji 🎻🎻 and umlauts äöü

a blank line above, and no end here"""


def prompt_for(path: Path, note: str) -> str:
    return f"""\
{note}
{AWKWARD}

RESPONSE FILE INSTRUCTION
Write your complete final response with this shell command:
cat > {path} <<'END_OF_RESPONSE'
your response
END_OF_RESPONSE"""


@dataclass
class Server:
    """The requests of CAO that a loop needs, over plain HTTP."""

    cao: Cao
    http: httpx.Client
    project: Path

    def create(self, path: str, **extra: str) -> str:
        where = {"provider": "codex", "agent_profile": PROFILE, "working_directory": str(self.project)}
        created = self.http.post(path, params=where | extra)
        assert created.status_code == 201, created.text + self.cao.tail()
        return str(created.json()["id"])

    def status(self, terminal: str) -> str:
        return str(self.http.get(f"/terminals/{terminal}").raise_for_status().json()["status"])

    def send(self, terminal: str, message: str) -> None:
        sent = self.http.post(f"/terminals/{terminal}/input", params={"message": message})
        assert sent.json() == {"success": True}

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TURN_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"not within {TURN_SECONDS:.0f} s: {what}\n{self.cao.tail()}"
            time.sleep(LOOK)

    def turn(self, terminal: str, response: Path, prompt: str) -> str:
        """Sends the prompt and waits as a loop does: for the file, and for an agent at rest."""
        self.send(terminal, prompt)
        self.until(f"{response.name} is there", response.exists)
        self.until("the agent rests", lambda: self.status(terminal) in ("idle", "completed"))
        text = response.read_text()
        response.unlink()
        return text


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    script = {
        "analyst_summary.md": [Answer(ANALYST_SUMMARY)],
        "analyst_review.md": [Answer(ANALYST_REVISE, before=("touch seen",)), Answer(ANALYST_APPROVED)],
    }
    with ScriptedModel(RoleBrain(script)) as served:
        yield served


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    folder = tmp_path / "profiles"
    folder.mkdir()
    text = f"---\nname: {PROFILE}\ndescription: an agent of the harness\n---\nDo as you are told.\n"
    (folder / f"{PROFILE}.md").write_text(text)
    return folder


def test_two_agents_answer_in_turn_and_leave_nothing_running(
    tmp_path: Path, profiles: Path, model: ScriptedModel
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    summary, review = project / "analyst_summary.md", project / "analyst_review.md"
    prompts = [
        prompt_for(summary, "Summarise."),
        prompt_for(review, "Review it."),
        prompt_for(review, "Review it again."),
    ]
    codex = ensure_codex(CODEX)
    with (
        cao_server(model_url=model.url, profiles=profiles, projects=[project], programs=[codex]) as cao,
        httpx.Client(base_url=cao.url, timeout=120, trust_env=False) as http,
    ):
        server = Server(cao, http, project)
        analyst = server.create("/sessions", session_name="harness")
        reviewer = server.create("/sessions/cao-harness/terminals")
        terminals = (analyst, reviewer)
        server.until("both are ready", lambda: {server.status(terminal) for terminal in terminals} == {"idle"})

        assert server.turn(analyst, summary, prompts[0]) == ANALYST_SUMMARY
        assert server.turn(reviewer, review, prompts[1]) == ANALYST_REVISE
        assert (project / "seen").exists()
        assert server.turn(reviewer, review, prompts[2]) == ANALYST_APPROVED

        assert [request.prompt for request in model.turns] == prompts
        started = living_in(cao.home).keys()
        assert cao.pid in started
        assert len(started) > 3, "the server, tmux and two agents"

    assert [pid for pid in started if is_running(pid)] == []
    assert mentioning(cao.home) == {}
    assert not cao.home.exists()
