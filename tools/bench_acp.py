"""Agents of the Agent Client Protocol in a run and by themselves: `python -m tools.bench_acp [TIMES [AGENT ...]]`.

A run and five bare clients in turn, so that other work on the machine slows both alike: the start of five, the time
from a turn's last byte to the next prompt at the model, and the memory of the host programs after the run.
"""

import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Final

from quintet.roles import ROLES, Role
from tests.e2e import soak
from tests.e2e.acp_agents import AGENTS
from tests.e2e.bare_acp import BareClient, bare
from tests.e2e.brains import RoleBrain
from tests.e2e.orders import ordered, orders
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, rig
from tools.loading.meter import MEGA, memory

TIMES: Final = 2
TRIES: Final = 3
"""as often as the host starts an agent"""
TURNS: Final = 14
MODEL_SECONDS: Final = 0.3
HOST: Final = "quintet.providers.acp.host"


@dataclass
class Figures:
    """What was measured of one way."""

    starts: list[float] = field(default_factory=list)
    """seconds until the last of five is ready"""
    handoffs: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    """MB of each host"""


def in_a_run(name: str, figures: Figures) -> None:
    """A whole loop; its terminals live on until their memory was read."""
    with rig(Cast(acp=(name,)), RoleBrain(soak.slowed(FAIL_THEN_PASS, MODEL_SECONDS))) as run:
        code, said = run.run()
        events = run.journal()
        bad = [event["event"] for event in events if event["event"] in soak.MARKS]
        if code or bad:
            raise RuntimeError(f"exit code {code}, {bad}\n{said}")
        figures.starts.append(max(event["seconds"] for event in events if event["event"] == "terminal_created"))
        figures.handoffs += soak.handoffs(run.model)
        hosts = [pid for pid, line in run.living().items() if HOST in line]
        figures.memory += [memory(pid) / MEGA for pid in hosts]


def by_itself(name: str, figures: Figures) -> None:
    """Five bare clients in the same kind of home and project, which have their turns one after the other."""
    agent = AGENTS[name]
    with rig(Cast(acp=(name,)), ordered) as place, ExitStack() as stack:
        command = [str(agent.ensure()), *agent.command]

        def start(role: Role) -> BareClient:
            for _ in range(TRIES):
                client = stack.enter_context(bare(command, place.project, place.env))
                with suppress(RuntimeError):  # opencode's first starts disturb each other
                    client.start()
                    return client
            raise RuntimeError(f"{name} does not start as {role.name}")

        begun = time.monotonic()
        with ThreadPoolExecutor(len(ROLES)) as pool:
            clients = list(pool.map(start, ROLES))
        figures.starts.append(time.monotonic() - begun)
        steps = [{"command": "true", "delay": MODEL_SECONDS}, {"text": "Done.", "delay": MODEL_SECONDS}]
        for number in range(TURNS):
            clients[number % len(clients)].prompt(f"Turn {number}.\n{orders(*steps)}")
        figures.handoffs += soak.handoffs(place.model)


def compare(name: str, times: int) -> str:
    """One row of the table."""
    ours, theirs = Figures(), Figures()
    for number in range(times):
        ways = ((in_a_run, ours), (by_itself, theirs))
        for measure, figures in ways if number % 2 else ways[::-1]:
            measure(name, figures)
    start, own = statistics.median(ours.starts), statistics.median(theirs.starts)
    handoff, bare_one = statistics.median(ours.handoffs), statistics.median(theirs.handoffs)
    cells = (name, f"{own:.1f} s", f"{start:.1f} s", f"{start / own:.2f}", f"{bare_one:.3f} s", f"{handoff:.3f} s")
    return "| " + " | ".join((*cells, f"{handoff - bare_one:+.3f} s", f"{max(ours.memory):.0f} MB")) + " |"


def main() -> None:
    times = int(sys.argv[1]) if sys.argv[1:] else TIMES
    columns = ("agent", "five by themselves", "in a run", "factor", "handoff, bare", "in a run", "longer by", "a host")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in sys.argv[2:] or AGENTS:
        print(compare(name, times), flush=True)


if __name__ == "__main__":
    main()
