"""A plan of faults: all of it follows from one number, so that whatever happened can be made to happen again."""

from dataclasses import dataclass
from random import Random
from typing import Final

from harness.chaos.sim.agents import MANNERS, STORIES
from harness.chaos.sim.server import API_FAULTS

KILLED: Final = "the run killed"
TRUNCATED: Final = "the state file truncated"
SERVER_LOST: Final = "the server lost"
GONE: Final = "the terminals gone"
CRASHED: Final = "an agent killed"
FULL: Final = "the disk full"
CLOSED: Final = "a directory unwritable"
API: Final = "the API: "
AGENT: Final = "an agent: "
SEVERAL: Final = "several at once"
GUARDED: Final = "the run killed, with agents that edit"
GUARDED_EVERY: Final = 80
"""a run with the guard takes a hundred times as long as one without, because real git is part of it"""

KINDS: Final = (
    KILLED, TRUNCATED, SERVER_LOST, GONE, CRASHED, FULL, CLOSED,
    *(API + name for name in API_FAULTS), *(AGENT + name for name in MANNERS), SEVERAL,
)  # fmt: skip
SHARES: Final = {KILLED: 8, TRUNCATED: 3, SERVER_LOST: 2, GONE: 3, CRASHED: 2, FULL: 4, CLOSED: 3, SEVERAL: 8}
"""how often a kind comes up, by default once: those that differ with every moment come up more often"""
EMBEDDED, SERVED, CAO = "the run's own server", "quintet serve", "CAO"
SERVERS: Final = (EMBEDDED, EMBEDDED, SERVED, CAO, CAO)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: str
    at: float
    """how far the run is, from 0 to 1 of what an undisturbed run does to disk and server"""
    size: float = 0.0
    """how much: of a file that stays, of the room on a disk, of the time that a server is away"""

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:.4f} ({self.size:.3f})"


@dataclass(frozen=True)
class Plan:
    """What one run has to bear."""

    seed: int
    kind: str
    faults: tuple[Fault, ...]
    story: str
    server: str
    cleanup: bool
    accept: bool

    @property
    def own(self) -> bool:
        """Whether the server is Quintet's."""
        return self.server != CAO

    @property
    def embedded(self) -> bool:
        """Whether the run brings its own server."""
        return self.server == EMBEDDED

    def __str__(self) -> str:
        switches = f"CLEANUP_ON_EXIT={int(self.cleanup)} AUTO_ACCEPT_PERMISSIONS={int(self.accept)}"
        return f"seed {self.seed}: {self.story}, {self.server}, {switches}: " + "; ".join(map(str, self.faults))


def plan_for(seed: int) -> Plan:
    """The plan of a seed. Neighbours have different kinds, so that any stretch of seeds has them all."""
    order = [kind for kind in KINDS for _ in range(SHARES.get(kind, 1))]
    Random(1).shuffle(order)  # noqa: S311
    random = Random(seed)  # noqa: S311 - a game, no secret
    kind = order[seed % len(order)]
    kinds = random.sample([other for other in KINDS if other != SEVERAL], 3) if kind == SEVERAL else [kind]
    if seed % GUARDED_EVERY == GUARDED_EVERY - 1:
        kind, kinds = GUARDED, [KILLED]
    if kind == KILLED:
        kinds *= random.choice((1, 1, 2))
    faults = tuple(Fault(each, random.random(), random.random()) for each in kinds)
    return Plan(
        seed,
        kind,
        faults,
        story=random.choice(STORIES),
        server=random.choice(SERVERS),
        cleanup=random.random() < 0.4,
        accept=random.random() < 0.5,
    )
