"""The process that carries out the run of a task: when it waits for a person, and until when."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from quintet.fleet.messages import Order, RunHalted
from quintet.fleet.run_task import _waits_for_person
from quintet.fleet.task_settings import load_task_settings
from quintet.fleet.tasks import Approval, TaskSpec
from quintet.layout import STATE_FILE
from quintet.loop.decide.flow import first_state
from quintet.loop.decide.state import Gate
from quintet.loop.record.people import People
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import save
from tests.fleet.test_checkpoint import NAME, RUN
from tests.stub.replies import TASK

APPROVED = Approval(step="approve-spec-0", approved=True, by="anna", at="2026-01-01T00:00:00+00:00", notes="")


def wait(tree: Path, since: float, approval: Approval | None = None, gate: Gate = Gate.SPEC) -> RunHalted | None:
    """Look at a run that has been waiting at a gate, with a limit of an hour."""
    settings = {"people": {"approve_timeout": 3600, "approve_default": "approve"}}
    spec = TaskSpec(repository=str(tree), is_local=True, base="c1", text=TASK, settings=settings)
    loaded = load_task_settings(spec, NAME, 1, tree, {}).settings
    record = RunRecord(tree, RUN)
    record.open()
    state = replace(first_state(loaded, RUN, "c1"), waiting=gate, waiting_since=since)
    save(state, tree / STATE_FILE, record, "")
    return _waits_for_person(loaded, Order(task=NAME, attempt=1, title="", spec=spec, patience=60, approval=approval))


@pytest.mark.parametrize(("gate", "what"), [(Gate.SPEC, "specification"), (Gate.RESULT, "result")])
def test_a_run_waits_for_approval_until_its_time(tmp_path: Path, gate: Gate, what: str) -> None:
    now = time.time()
    halted = wait(tmp_path, now, gate=gate)
    assert halted
    assert halted.reason == f"waits for approval of the {what}: quintet queue approve {NAME}"
    assert halted.gate == f"approve-{gate}-0"
    assert halted.until == pytest.approx(now + 3600)
    assert wait(tmp_path, now - 3601) is None, "its time is over"


def test_the_answer_that_comes_with_the_order_is_written_down_once(tmp_path: Path) -> None:
    assert wait(tmp_path, time.time(), APPROVED) is None
    later = APPROVED.model_copy(update={"approved": False, "by": "bert"})
    assert wait(tmp_path, time.time(), later) is None
    decided = People(RunRecord(tmp_path, RUN).folder).decision("approve-spec-0")
    assert decided
    assert (decided.approved, decided.by) == (True, "anna")


def test_an_answer_to_an_earlier_question_does_not_count(tmp_path: Path) -> None:
    assert wait(tmp_path, time.time(), APPROVED.model_copy(update={"step": "approve-spec-1"}))
