"""The short form of `make fleet` with SQLite."""

from tests.fleet import batches_plan as kinds
from tests.fleet.batches import carry_out
from tests.fleet.batches_plan import KINDS, POSTGRESQL, SQLITE, Batch, Fault, plan_for


def test_no_fault_loses_or_doubles_a_task_of_two_workers() -> None:
    faults = (Fault(kinds.SLOT_KILLED, 2, 0.0, 0, 0.0), Fault(kinds.CANCELLED, 3, 0.0, 1, 0.9))
    outcome = carry_out(Batch(0, SQLITE, 3, (1, 1), faults))
    assert not outcome.violations, outcome.tell()
    assert not outcome.not_tried


def test_a_seed_has_one_plan_and_seeds_in_a_row_have_every_fault() -> None:
    for database in (POSTGRESQL, SQLITE):
        plans = [plan_for(seed, database) for seed in range(10)]
        assert plans == [plan_for(seed, database) for seed in range(10)]
        assert {fault.kind for plan in plans for fault in plan.faults} == set(KINDS[database])
