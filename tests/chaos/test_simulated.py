"""The short form of `make chaos`: the first of its simulated runs, and that each can be had again."""

import pytest

from tests.chaos.outcome import Outcome
from tests.chaos.sim.plan import GUARDED, KINDS, plan_for
from tests.chaos.sim.run import simulate

SEEDS = range(80)
BATCH = 20


@pytest.mark.parametrize("first", SEEDS[::BATCH])
def test_no_fault_breaks_a_promise(first: int) -> None:
    bad = [outcome for seed in SEEDS[first : first + BATCH] if (outcome := simulate(plan_for(seed))).violations]
    assert not bad, "\n\n".join(outcome.tell() for outcome in bad)


def test_the_short_form_has_every_kind_of_fault() -> None:
    assert {plan_for(seed).kind for seed in SEEDS} == {*KINDS, GUARDED}


@pytest.mark.parametrize("seed", [3, 7])
def test_a_seed_gives_the_same_run_again(seed: int) -> None:
    def story(outcome: Outcome) -> tuple[list[str], int, list[str]]:
        return outcome.codes, outcome.steps, [line.partition("(")[0] for line in outcome.said]

    assert story(simulate(plan_for(seed))) == story(simulate(plan_for(seed)))
