"""Faults that once broke a promise, each at the moments at which it did. Every `make chaos` begins with them."""

from collections.abc import Iterator
from typing import Final

from harness.chaos.sim import plan as kinds
from harness.chaos.sim.plan import CAO, EMBEDDED, SERVED, Fault, Plan

WHILE_STARTING: Final = tuple(step / 300 for step in range(1, 45, 6))
"""moments from the start of a run to its first prompt"""


def _plan(kind: str, at: float, server: str = EMBEDDED, size: float = 0.5, *, cleanup: bool = False) -> Plan:
    return Plan(1, kind, (Fault(kind, at, size),), "smooth", server, cleanup, accept=True)


def _all() -> Iterator[Plan]:
    for at in WHILE_STARTING:  # terminals were left behind
        yield from (_plan(kinds.KILLED, at, server) for server in (EMBEDDED, SERVED, CAO))
        yield _plan(kinds.SERVER_LOST, at, SERVED, size=0.9)
        for answer in ("half an answer", "not JSON", "500 after it was done"):
            yield _plan(kinds.API + answer, at, SERVED)
    for at in (0.1, 0.3, 0.5, 0.9):  # the next run met the agents of the last one
        for server in (EMBEDDED, CAO):
            yield from (_plan(kinds.TRUNCATED, at, server, cleanup=cleanup) for cleanup in (False, True))
    for at in (0.0, 0.5, 0.9):  # the run was stuck
        for server in (EMBEDDED, CAO):
            yield from (_plan(kinds.AGENT + thing, at, server) for thing in ("symlink", "directory"))
    for at in (0.0, 0.3, 0.5, 0.9):  # a reply was lost
        yield _plan(kinds.AGENT + "late", at)


FOUND: Final = tuple(_all())
