"""The short form of `make chaos` on real tmux: one run for each part that can be killed, and one full disk."""

import pytest

from tests.chaos.real import plan as kinds
from tests.chaos.real.plan import Plan
from tests.chaos.real.run import carry_out

PLANS = (
    Plan(1, kinds.KILLED, 4, 0.1, 0.5, brief=True),
    Plan(2, kinds.TMUX_KILLED, 3, 0.0, 0.5, brief=True),
    Plan(3, kinds.AGENT_KILLED, 2, 0.05, 0.5, brief=True),
    Plan(4, kinds.SERVER_KILLED, 2, 0.0, 0.2, brief=True),
    Plan(5, kinds.FULL, 4, 0.0, 0.1, brief=True),
)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.kind)
def test_no_fault_breaks_a_promise_on_real_tmux(plan: Plan) -> None:
    outcome = carry_out(plan)
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert not outcome.violations, outcome.tell()
