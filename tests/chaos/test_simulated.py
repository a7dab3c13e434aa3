"""The short form of `make chaos`: the first of its simulated runs of each kind, and that each can be had again."""

import pytest

from tests.chaos.outcome import Outcome
from tests.chaos.sim.plan import GUARDED, KINDS, plan_for
from tests.chaos.sim.run import simulate

FIRST = {plan_for(seed).kind: seed for seed in reversed(range(80))}
"""the first seed of each kind"""


@pytest.mark.parametrize("kind", sorted(FIRST))
def test_no_fault_breaks_a_promise(kind: str) -> None:
    outcome = simulate(plan_for(FIRST[kind]))
    assert not outcome.violations, outcome.tell()


def test_the_short_form_has_every_kind_of_fault() -> None:
    assert FIRST.keys() == {*KINDS, GUARDED}


@pytest.mark.parametrize("seed", [3, 7])
def test_a_seed_gives_the_same_run_again(seed: int) -> None:
    def story(outcome: Outcome) -> tuple[list[str], int, list[str]]:
        return outcome.codes, outcome.steps, [line.partition("(")[0] for line in outcome.said]

    assert story(simulate(plan_for(seed))) == story(simulate(plan_for(seed)))
