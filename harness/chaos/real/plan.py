"""The plans of the runs on real tmux: every kind of fault at every step, each at a moment that its number decides."""

from dataclasses import dataclass
from random import Random
from typing import Final

from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Role

KILLED: Final = "the run killed"
SERVER_KILLED: Final = "quintet serve killed"
AGENT_KILLED: Final = "an agent killed"
TMUX_KILLED: Final = "tmux killed"
TRUNCATED: Final = "the state file truncated"
FULL: Final = "the disk full"
CLOSED: Final = "a directory unwritable"
API: Final = "the API: "
AGENT: Final = "an agent: "

ORDER: Final = (
    ANALYST, PEER_ANALYST, ANALYST, PEER_ANALYST, PROGRAMMER, PEER_PROGRAMMER, TESTER,
    PROGRAMMER, PEER_PROGRAMMER, TESTER,
)  # fmt: skip
"""whose turn each step of an undisturbed run is: a REVISE, then a test that fails and one that passes"""
STEPS: Final = len(ORDER)
API_FAULTS: Final = ("slow", "refuses", "500", "half an answer", "dropped")
MANNERS: Final = ("late", "empty", "huge", "pieces", "not_utf8", "symlink", "directory")
"""of the response file"""
HABITS: Final = ("no verdict", "says it only", "asks permission")
LONGEST_DELAY: Final = 0.3
"""seconds after an agent has got its prompt: about as long as a turn takes"""


@dataclass(frozen=True)
class Plan:
    """One run with one fault."""

    seed: int
    kind: str
    step: int
    """the prompt after which the fault comes; 0: while the terminals are being started"""
    delay: float
    size: float
    brief: bool = False
    """whether every agent is asked only once: no review sends anything back, no test fails"""

    @property
    def role(self) -> Role:
        """Whose turn it is."""
        return ORDER[max(self.step, 1) - 1]

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.kind}, {self.delay:.3f} s after prompt {self.step} (size {self.size:.3f})"


def _all() -> list[tuple[str, int]]:
    """Every kind with the steps that it is tried at; the list goes round, so more runs try other moments."""
    anywhere = range(STEPS + 1)
    within = range(1, STEPS + 1)
    pairs: list[tuple[str, int]] = []
    for kind in (KILLED, KILLED, KILLED, SERVER_KILLED, AGENT_KILLED, AGENT_KILLED, TMUX_KILLED, TMUX_KILLED):
        pairs += [(kind, step) for step in anywhere]
    for kind in (TRUNCATED, FULL, FULL, CLOSED, CLOSED):
        pairs += [(kind, step) for step in anywhere]
    for number, name in enumerate(API_FAULTS):
        pairs += [(API + name, step) for step in list(anywhere)[number % 2 :: 2]]
    for number, name in enumerate(MANNERS):
        pairs += [(AGENT + name, step) for step in list(within)[number % 2 :: 2]]
    pairs += [(AGENT + HABITS[0], step) for step in (2, 4, 6, 7, 9, 10)]
    pairs += [(AGENT + name, step) for name in HABITS[1:] for step in (1, 3, 5, 8)]
    Random(2).shuffle(pairs)  # noqa: S311 - so that a part of them has something of everything
    return pairs


_PAIRS: Final = _all()
ENOUGH: Final = len(_PAIRS)
"""runs until each pair was tried once"""


def plan_for(seed: int) -> Plan:
    """The plan of a seed."""
    kind, step = _PAIRS[seed % ENOUGH]
    random = Random(seed)  # noqa: S311
    return Plan(seed, kind, step, random.choice((0.0, random.uniform(0, LONGEST_DELAY))), random.random())
