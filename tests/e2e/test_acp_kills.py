"""Real agents of the Agent Client Protocol, ended in the middle of their work: nothing is left, nothing is lost."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import Answer, RoleBrain
from tests.e2e.desk import Desk, desk
from tests.e2e.orders import orders
from tests.e2e.processes import living_in, signal_all
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import QUINTET, RUN_SECONDS, Cast, Rig, rig, texts
from tests.e2e.test_loops import CODEX
from tests.e2e.test_recovery import until

pytestmark = pytest.mark.e2e

HOST = "quintet.providers.acp.host"
SECONDS = 60.0
LOOK = 0.05
TOOLS = {"sleep 1111", "sleep 2222"}
STUBBORN = "trap '' HUP TERM; setsid sleep 2222 & sleep 1111; true"
"""one of them ignores a hang-up, the other has cut itself loose"""


def started(home: Path) -> dict[int, str]:
    """What runs there but for the servers: hosts, agents, tools."""
    return {pid: line for pid, line in living_in(home).items() if "tmux" not in line and "quintet serve" not in line}


def hosts(home: Path) -> list[int]:
    return [pid for pid, line in living_in(home).items() if HOST in line]


def delete(agent: Desk) -> None:
    agent.http.delete(f"/terminals/{agent.terminal}", timeout=SECONDS).raise_for_status()


def kill_session(agent: Desk) -> None:
    socket = Path(agent.rig.env["XDG_STATE_HOME"], "quintet", "s", agent.look()["session_name"])
    subprocess.run(["tmux", "-S", str(socket), "kill-session"], check=True, env=dict(agent.rig.env))


def stop(agent: Desk) -> None:
    command = [*QUINTET, "stop", "--session", agent.look()["session_name"]]
    subprocess.run(command, check=True, env=dict(agent.rig.env), cwd=agent.rig.home, stdout=subprocess.DEVNULL)


def kill_host(agent: Desk) -> None:
    signal_all(hosts(agent.rig.home), signal.SIGKILL)


ENDINGS: tuple[Callable[[Desk], None], ...] = (kill_host, delete, stop, kill_session)


@pytest.mark.parametrize("name", AGENTS)
def test_nothing_outlives_its_terminal_in_the_middle_of_a_tool(name: str) -> None:
    with desk(Cast(acp=(name,))) as agent:
        for end in ENDINGS:
            agent.open()
            agent.send(f"Take long.\n{orders({'command': STUBBORN}, {'text': 'Never said.'})}")
            agent.until(lambda _: {line.strip() for line in started(agent.rig.home).values()} >= TOOLS)
            end(agent)
            deadline = time.monotonic() + SECONDS
            while (left := started(agent.rig.home)) and time.monotonic() < deadline:
                time.sleep(LOOK)
            assert left == {}, end.__name__
            if end is kill_host:
                delete(agent)


def kill_agents(run: Rig) -> None:
    """All processes of the agents below their hosts, which go on."""
    for host in hosts(run.home):
        signal_all([process.pid for process in psutil.Process(host).children(recursive=True)], signal.SIGKILL)


def kill_everything(run: Rig) -> None:
    """The run, its terminals, its agents."""
    while living := run.living():
        signal_all(living, signal.SIGKILL)
        time.sleep(LOOK)


KILLS = [
    # it can load a conversation only once
    ("gemini_cli", [kill_agents]),
    ("gemini_cli", [kill_everything]),
    *((name, [kill_agents, kill_everything]) for name in AGENTS if name != "gemini_cli"),
]


@pytest.mark.parametrize(("name", "kills"), KILLS)
def test_a_conversation_goes_on_after_kills(name: str, kills: list[Callable[[Rig], None]]) -> None:
    """In the programmer's second turn its agent is killed, then the whole run."""
    script = {file: list(answers) for file, answers in FAIL_THEN_PASS.items()}
    wrong, _, right = script["programmer_summary.md"]
    endless = Answer(right.text, right.before, delay=10 * SECONDS)
    script["programmer_summary.md"] = [wrong, *(endless for _ in kills), right]
    brain = RoleBrain(script)
    cast = Cast(codex=CODEX, acp=(name,), agents={"programmer": {"provider": name}})
    quick = {"MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1", "CLEANUP_ON_EXIT": "1"}
    with rig(cast, brain) as run:
        process = run.start(**quick)
        for number, kill in enumerate(kills, start=2):
            until(run, process, lambda: brain.asked["programmer_summary.md"] >= number, RUN_SECONDS)  # noqa: B023
            kill(run)
            brain.forget_turns()
        said, _ = process.communicate(timeout=RUN_SECONDS)
        if kill_everything in kills:
            assert process.returncode == -signal.SIGKILL
            process = run.start(**quick)
            said, _ = process.communicate(timeout=RUN_SECONDS)
        assert process.returncode == 0, said

        events = run.journal()
        created = [event for event in events if event["event"] == "terminal_created" and event["role"] == "programmer"]
        assert [bool(event["continues"]) for event in created] == [False, *(True for _ in kills)], said
        asked = [request for request in run.model.turns if "programmer_summary.md" in request.prompt]
        assert asked[0].prompt in asked[-1].prompts, "what the killed programmer knew, the new one knows"
        sent = max((run.archive / "prompts").glob("*-programmer.md")).read_text()
        assert texts([asked[-1].prompt]) == texts([sent]), "and it gets the whole prompt"
        assert "reminded" not in [event["event"] for event in events]
        assert run.left() == {}
