"""What the runs with faults have found, each once more at the moments where it was found."""

import pytest

from tests.chaos.sim import plan as kinds
from tests.chaos.sim.plan import CAO, EMBEDDED, SERVED, Fault, Plan
from tests.chaos.sim.run import simulate

CREATION = [step / 300 for step in range(1, 45, 6)]
"""moments from the first breath of a run to the first prompt"""


def check(kind: str, at: float, size: float = 0.5, server: str = EMBEDDED, *, cleanup: bool = False) -> None:
    outcome = simulate(Plan(1, kind, (Fault(kind, at, size),), "smooth", server, cleanup, accept=True))
    assert not outcome.violations, outcome.tell()


@pytest.mark.parametrize("server", [EMBEDDED, SERVED, CAO])
def test_killed_while_the_terminals_are_started_leaves_none_of_them(server: str) -> None:
    for at in CREATION:
        check(kinds.KILLED, at, server=server)


def test_a_server_that_goes_away_while_the_terminals_are_started_does_not_keep_them() -> None:
    for at in CREATION:
        check(kinds.SERVER_LOST, at, size=0.9, server=SERVED)


@pytest.mark.parametrize("fault", ["half an answer", "not JSON", "500 after it was done"])
def test_a_terminal_whose_creation_was_not_answered_is_ended_all_the_same(fault: str) -> None:
    for at in CREATION:
        check(kinds.API + fault, at, server=SERVED)


@pytest.mark.parametrize("cleanup", [False, True])
@pytest.mark.parametrize("server", [EMBEDDED, CAO])
def test_a_run_whose_state_is_torn_leaves_no_agents_to_the_next(server: str, cleanup: bool) -> None:
    for at in (0.1, 0.3, 0.5, 0.9):
        check(kinds.TRUNCATED, at, server=server, cleanup=cleanup)


@pytest.mark.parametrize("thing", ["symlink", "directory"])
@pytest.mark.parametrize("server", [EMBEDDED, CAO])
def test_a_thing_in_place_of_the_response_file_is_no_dead_end(server: str, thing: str) -> None:
    for at in (0.0, 0.5, 0.9):
        check(kinds.AGENT + thing, at, server=server)


def test_a_reply_that_comes_after_its_step_was_answered_is_kept() -> None:
    for at in (0.0, 0.3, 0.5, 0.9):
        check(kinds.AGENT + "late", at)
