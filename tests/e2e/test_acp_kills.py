"""Real agents of the Agent Client Protocol, ended in the middle of their work: nothing is left."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.desk import TURN_SECONDS, Desk, desk
from tests.e2e.orders import orders
from tests.e2e.processes import living_in, signal_all
from tests.e2e.rig import Cast

pytestmark = pytest.mark.e2e_all

HOST = "quintet.providers.acp.host"
TOOLS = {"sleep 1111", "sleep 2222"}
STUBBORN = "trap '' HUP TERM; setsid sleep 2222 & sleep 1111; true"
"""one of them ignores a hang-up, the other has cut itself loose"""


def started(home: Path) -> dict[int, str]:
    """Return what runs there except for the servers: hosts, agents, tools."""
    return {pid: line for pid, line in living_in(home).items() if "tmux" not in line and "quintet serve" not in line}


def hosts(home: Path) -> list[int]:
    return [pid for pid, line in living_in(home).items() if HOST in line]


def delete(agent: Desk) -> None:
    agent.http.delete(f"/terminals/{agent.terminal}", timeout=TURN_SECONDS).raise_for_status()


def kill_session(agent: Desk) -> None:
    socket = Path(agent.rig.env["XDG_STATE_HOME"], "quintet", "s", agent.look()["session_name"])
    subprocess.run(["tmux", "-S", str(socket), "kill-session"], check=True, env=dict(agent.rig.env))


def stop(agent: Desk) -> None:
    code, said = agent.rig.quintet("stop", "--session", agent.look()["session_name"])
    assert code == 0, said


def kill_host(agent: Desk) -> None:
    signal_all(hosts(agent.rig.home), signal.SIGKILL)


ENDINGS: tuple[Callable[[Desk], None], ...] = (kill_host, delete, stop, kill_session)


@pytest.mark.parametrize("name", AGENTS)
def test_nothing_outlives_its_terminal_in_the_middle_of_a_tool(name: str) -> None:
    with desk(Cast(acp=(name,))) as agent:
        home = agent.rig.home
        for end in ENDINGS:
            agent.open()
            agent.send(f"Take long.\n{orders({'command': STUBBORN}, {'text': 'Never said.'})}")
            agent.until(lambda _: {line.strip() for line in started(home).values()} >= TOOLS)
            end(agent)
            agent.rig.until(lambda: not started(home), f"nothing is left after {end.__name__}")
            if end is kill_host:
                delete(agent)
