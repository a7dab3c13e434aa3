"""Agents of the Agent Client Protocol in a run and by themselves: `python -m tools.bench_acp [TIMES [AGENT ...]]`.

A run, then five bare clients that are sent the run's prompts in the same order: the start of five, the time from a
turn's last byte to the next prompt at the model, turn by turn, and the memory of the host programs after the run.
Turns are compared one by one, as an agent takes longer over its first prompt than over the others. Some agents take
now half a second and now two over the end of a turn; so the part of the handoff that is not the agent's own is told
too, which a bare client does not have: from the agent's word that the turn is over to the next prompt for an agent.
"""

import itertools
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet.providers.acp.host_settings import RECORD
from quintet.providers.turn_events import read_events
from quintet.roles import ROLES
from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import RoleBrain, response_path
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, rig
from tools import soak_real as soak
from tools.bare_acp import BareClient, bare
from tools.loading.meter import MEGA, memory

TIMES: Final = 2
TRIES: Final = 3
"""as often as the host starts an agent"""
MODEL_SECONDS: Final = 0.3
HOST: Final = "quintet.providers.acp.host"


@dataclass(frozen=True)
class Run:
    """What was measured of a whole loop."""

    start: float
    """seconds until the last of five is ready"""
    handoffs: Sequence[float]
    between: Sequence[float]
    """of each handoff, from the agent's word that its turn is over to the next prompt for an agent"""
    memory: Sequence[float]
    """MB of each host"""
    project: Path
    prompts: Sequence[str]


def slowed_brain() -> RoleBrain:
    return RoleBrain(soak.slowed(FAIL_THEN_PASS, MODEL_SECONDS))


def in_a_run(name: str) -> Run:
    """A whole loop; its terminals live on until their memory was read."""
    with rig(Cast(acp=(name,)), slowed_brain()) as run:
        code, said = run.run()
        events = run.journal()
        bad = [event["event"] for event in events if event["event"] in soak.MARKS]
        if code or bad:
            raise RuntimeError(f"exit code {code}, {bad}\n{said}")
        hosts = [pid for pid, line in run.living().items() if HOST in line]
        return Run(
            start=max(event["seconds"] for event in events if event["event"] == "terminal_created"),
            handoffs=list(soak.handoffs(run.model)),
            between=list(between_turns(Path(run.env["XDG_STATE_HOME"]).rglob(RECORD))),
            memory=[memory(pid) / MEGA for pid in hosts],
            project=run.project,
            prompts=[turn.prompt for turn in run.model.turns],
        )


def between_turns(records: Iterable[Path]) -> Iterator[float]:
    """The seconds between the end of each turn and the begin of the next one, in whatever terminal."""
    events = [event for record in records for event in read_events(record) if event["event"] in ("begin", "end")]
    for before, after in itertools.pairwise(sorted(events, key=lambda event: float(event["at"]))):
        if (before["event"], after["event"]) == ("end", "begin"):
            yield after["at"] - before["at"]


def by_itself(name: str, run: Run) -> tuple[float, Sequence[float]]:
    """The start and the handoffs of five bare clients that are sent what the run sent, in the same kind of project."""
    agent = AGENTS[name]
    with rig(Cast(acp=(name,)), slowed_brain()) as place, ExitStack() as stack:
        command = [str(agent.ensure()), *agent.command]

        def start(_role: object) -> BareClient:
            for _ in range(TRIES):
                client = stack.enter_context(bare(command, place.project, place.env))
                with suppress(RuntimeError):  # opencode's first starts disturb each other
                    client.start()
                    return client
            raise RuntimeError(f"{name} does not start")

        begun = time.monotonic()
        with ThreadPoolExecutor(len(ROLES)) as pool:
            free = list(pool.map(start, ROLES))
        ready = time.monotonic() - begun
        clients: dict[str, BareClient] = {}
        for sent in run.prompts:
            prompt = sent.replace(str(run.project), str(place.project))
            response = response_path(prompt)
            assert response is not None
            response.parent.mkdir(parents=True, exist_ok=True)
            client = clients.get(response.name) or clients.setdefault(response.name, free.pop())
            client.prompt(prompt)
        return ready, list(soak.handoffs(place.model))


def compare(name: str, times: int) -> str:
    """One row of the table."""
    runs = [(run, by_itself(name, run)) for run in (in_a_run(name) for _ in range(times))]
    start = statistics.median(run.start for run, _ in runs)
    own = statistics.median(ready for _, (ready, _) in runs)
    pairs = [pair for run, (_, theirs) in runs for pair in zip(run.handoffs, theirs, strict=True)]
    handoff, bare_one = (statistics.median(one) for one in zip(*pairs, strict=True))
    between = statistics.median(seconds for run, _ in runs for seconds in run.between)
    longer = statistics.median(ours - theirs for ours, theirs in pairs)
    host = max(one for run, _ in runs for one in run.memory)
    cells = (name, f"{own:.1f} s", f"{start:.1f} s", f"{start / own:.2f}", f"{bare_one:.3f} s", f"{handoff:.3f} s")
    return "| " + " | ".join((*cells, f"{longer:+.3f} s", f"{between:.3f} s", f"{host:.0f} MB")) + " |"


def main() -> None:
    times = int(sys.argv[1]) if sys.argv[1:] else TIMES
    starts, handoffs = ("five by themselves", "in a run", "factor"), ("handoff, bare", "in a run", "longer by")
    columns = ("agent", *starts, *handoffs, "not the agent's", "a host")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name in sys.argv[2:] or AGENTS:
        print(compare(name, times), flush=True)


if __name__ == "__main__":
    main()
