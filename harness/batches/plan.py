"""The plan of a batch: its tasks and what is broken when, drawn from a seed."""

from dataclasses import dataclass
from random import Random
from typing import Final

LEASE: Final = 10.0
"""seconds; 120 in production. A run that is cut off has a quarter of it to stop, on a machine that is busy."""
POSTGRESQL: Final = "postgresql"
SQLITE: Final = "sqlite"

SLOT_KILLED: Final = "slot killed"
RUN_KILLED: Final = "run killed"
WORKER_KILLED: Final = "worker killed"
MACHINE_KILLED: Final = "machine killed"
WORKER_ENDED: Final = "worker ended"
OTHER_VERSION: Final = "other version"
MACHINE_FROZEN: Final = "machine frozen"
SLOT_FROZEN: Final = "slot frozen"
SAME_NAME: Final = "same name"
SAME_NAME_LATE: Final = "same name, first one frozen"
CANCELLED: Final = "cancel and retry"
DATABASE_SHORT: Final = "database away, short"
DATABASE_LONG: Final = "database away, long"
REMOTE_AWAY: Final = "remote away"
DISK_FULL: Final = "disk full"

LENGTHS: Final = {
    SLOT_KILLED: (0.0, 0.0),
    RUN_KILLED: (0.0, 0.0),
    WORKER_KILLED: (0.0, 1.5),
    MACHINE_KILLED: (0.0, 1.5),
    WORKER_ENDED: (0.0, 0.5),
    OTHER_VERSION: (0.0, 0.5),
    MACHINE_FROZEN: (1.3, 2.2),
    SLOT_FROZEN: (1.3, 2.0),
    SAME_NAME: (0.5, 1.0),
    SAME_NAME_LATE: (2.0, 2.5),
    CANCELLED: (0.0, 0.4),
    DATABASE_SHORT: (0.1, 0.6),
    DATABASE_LONG: (1.3, 1.8),
    REMOTE_AWAY: (0.2, 1.6),
    DISK_FULL: (0.5, 1.0),
}
"""how long each lasts, in leases"""
ON_A_MACHINE: Final = (
    SLOT_KILLED, RUN_KILLED, WORKER_KILLED, MACHINE_KILLED, WORKER_ENDED, OTHER_VERSION, MACHINE_FROZEN, SLOT_FROZEN,
    SAME_NAME, SAME_NAME_LATE, DISK_FULL,
)  # fmt: skip
_NOT_WITH_A_FILE: Final = (SAME_NAME_LATE, DATABASE_SHORT, DATABASE_LONG, REMOTE_AWAY, DISK_FULL)
"""one machine has neither a remote nor a server, and its own lock keeps names apart"""
KINDS: Final = {
    POSTGRESQL: tuple(LENGTHS),
    SQLITE: tuple(kind for kind in LENGTHS if kind not in _NOT_WITH_A_FILE),
}
STEPS: Final = 5
"""turns of agents in a task that passes in its first round"""


@dataclass(frozen=True)
class Fault:
    """One thing that is broken, and mended after a while."""

    kind: str
    step: int
    """it comes when the agents of all tasks together have begun so many turns"""
    length: float
    """seconds"""
    machine: int
    pick: float
    """which of several processes or tasks, between 0 and 1"""

    def __str__(self) -> str:
        where = f" on {self.machine}" if self.kind in ON_A_MACHINE else ""
        return f"{self.kind}{where} after turn {self.step}{f' for {self.length:.1f} s' if self.length else ''}"


@dataclass(frozen=True)
class Batch:
    """The tasks of a batch, the machines that carry them out, and the faults."""

    seed: int
    database: str
    tasks: int
    machines: tuple[int, ...]
    """the slots of each"""
    faults: tuple[Fault, ...]
    lease: float = LEASE

    def rounds(self, task: int) -> int:
        """How many rounds a task takes."""
        return 2 if task % 5 == 1 else 1

    def fails_first(self, task: int) -> bool:
        """Whether the first attempt at a task fails, so that its user retries it."""
        return task % 10 == 3

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.database}: {'; '.join(map(str, self.faults)) or 'no faults'}"


def plan_for(
    seed: int, database: str, tasks: int = 20, machines: tuple[int, ...] = (2, 1, 1, 1), faults: int = 0
) -> Batch:
    """The plan of a seed. Seeds in a row have every kind of fault equally often."""
    random = Random(f"{database} {seed}")  # noqa: S311
    number = faults or (7 if database == POSTGRESQL else 5)
    kinds = KINDS[database]
    first = seed * number
    drawn = [_nth(kinds, first + one) for one in range(number)]
    steps = sorted(random.randint(1, int(tasks * STEPS * 0.8)) for _ in drawn)
    random.shuffle(drawn)
    return Batch(
        seed,
        database,
        tasks,
        machines,
        tuple(
            Fault(kind, step, _length(random, kind), random.randrange(len(machines)), random.random())
            for kind, step in zip(drawn, steps, strict=True)
        ),
    )


def _nth(kinds: tuple[str, ...], number: int) -> str:
    """The kinds go round, each time in another order."""
    lap, place = divmod(number, len(kinds))
    return Random(lap).sample(kinds, len(kinds))[place]  # noqa: S311


def _length(random: Random, kind: str) -> float:
    shortest, longest = LENGTHS[kind]
    return round(LEASE * random.uniform(shortest, longest), 1) if longest else 0.0
