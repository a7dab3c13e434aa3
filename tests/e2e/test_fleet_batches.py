"""The short form of `make fleet` with a real PostgreSQL: three machines, nine tasks, and what breaks most."""

import pytest

from harness.batches import plan as kinds
from harness.batches.plan import POSTGRESQL, Batch, Fault
from harness.batches.run import carry_out

pytestmark = pytest.mark.e2e_all
FAULTS = (
    Fault(kinds.MACHINE_FROZEN, 4, 14.0, 0, 0.0),
    Fault(kinds.MACHINE_KILLED, 8, 3.0, 1, 0.0),
    Fault(kinds.REMOTE_AWAY, 12, 5.0, 0, 0.0),
    Fault(kinds.CANCELLED, 16, 0.0, 0, 0.5),
    Fault(kinds.DATABASE_LONG, 20, 13.0, 0, 0.0),
    Fault(kinds.SLOT_KILLED, 24, 0.0, 2, 0.0),
)


def test_no_fault_loses_or_doubles_a_task_of_three_machines() -> None:
    outcome = carry_out(Batch(0, POSTGRESQL, 9, (1, 1, 1), FAULTS))
    assert not outcome.violations, outcome.tell()
