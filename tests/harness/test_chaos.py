"""The short form of `make chaos`: a few runs on real tmux and a few simulated ones."""

import pytest

from harness.chaos.outcome import Outcome
from harness.chaos.real import plan as real
from harness.chaos.real.run import carry_out
from harness.chaos.sim import plan as simulated
from harness.chaos.sim.found import FOUND
from harness.chaos.sim.plan import GUARDED, KINDS, Plan, plan_for
from harness.chaos.sim.run import simulate

FIRST = {plan_for(seed).kind: seed for seed in reversed(range(80))}
"""the first seed of each kind"""
SHORT = (
    simulated.KILLED, simulated.TRUNCATED, simulated.SERVER_LOST, simulated.GONE, simulated.CRASHED, simulated.FULL,
    simulated.CLOSED, simulated.SEVERAL, simulated.API + "dropped", simulated.AGENT + "pieces",
)  # fmt: skip
REAL = (
    real.Plan(1, real.KILLED, 4, 0.1, 0.5, brief=True),
    real.Plan(2, real.TMUX_KILLED, 3, 0.0, 0.5, brief=True),
    real.Plan(4, real.SERVER_KILLED, 2, 0.0, 0.2, brief=True),
)


@pytest.mark.parametrize("plan", REAL, ids=lambda plan: plan.kind)
def test_no_fault_breaks_a_promise_on_real_tmux(plan: real.Plan) -> None:
    outcome = carry_out(plan)
    assert not outcome.violations, outcome.tell()


@pytest.mark.parametrize("kind", SHORT)
def test_no_fault_breaks_a_promise(kind: str) -> None:
    outcome = simulate(plan_for(FIRST[kind]))
    assert not outcome.violations, outcome.tell()


@pytest.mark.parametrize("plan", FOUND[::9], ids=lambda plan: plan.kind)
def test_a_fault_that_once_broke_a_promise_no_longer_does(plan: Plan) -> None:
    outcome = simulate(plan)
    assert not outcome.violations, outcome.tell()


def test_eighty_seeds_have_every_kind_of_fault() -> None:
    assert FIRST.keys() == {*KINDS, GUARDED}


def test_a_seed_gives_the_same_run_again() -> None:
    def story(outcome: Outcome) -> tuple[list[str], int, list[str]]:
        return outcome.codes, outcome.steps, [line.partition("(")[0] for line in outcome.said]

    assert story(simulate(plan_for(7))) == story(simulate(plan_for(7)))
