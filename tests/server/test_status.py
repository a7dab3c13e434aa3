"""The status that the evidence stands for, case by case."""

from dataclasses import replace

import pytest

from quintet.api.status import TerminalStatus as Is
from quintet.providers.base import TurnRecord
from quintet.server.terminal.status import StatusEvidence, decide_status

FRESH = StatusEvidence(
    ready=True, needs_user=False, turn=0, typing=False, shown=Is.IDLE, record=None, begun=False, settled=True
)
ASKED = replace(FRESH, turn=1)
RUNNING, OVER = TurnRecord(ended=False), TurnRecord(ended=True)
STOPPED = TurnRecord(ended=True, final=False)


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (FRESH, Is.IDLE),
        (replace(FRESH, shown=Is.COMPLETED), Is.IDLE),
        (replace(FRESH, shown=Is.PROCESSING), Is.PROCESSING),
        (replace(FRESH, ready=False), Is.UNKNOWN),
        (replace(FRESH, ready=False, shown=Is.WAITING_USER_ANSWER), Is.UNKNOWN),
        (replace(FRESH, ready=False, needs_user=True, shown=Is.WAITING_USER_ANSWER), Is.WAITING_USER_ANSWER),
        (replace(ASKED, typing=True), Is.PROCESSING),
        (ASKED, Is.COMPLETED),
        (replace(ASKED, settled=False), Is.PROCESSING),
        (replace(ASKED, quiet=False), Is.PROCESSING),
        (replace(ASKED, quiet=False, begun=True, shown=Is.COMPLETED), Is.PROCESSING),
        (replace(ASKED, quiet=False, record=OVER), Is.COMPLETED),
        (replace(FRESH, quiet=False), Is.IDLE),
        (replace(ASKED, settled=False, begun=True), Is.COMPLETED),
        (replace(ASKED, shown=Is.PROCESSING), Is.PROCESSING),
        (replace(ASKED, shown=Is.UNKNOWN), Is.UNKNOWN),
        (replace(ASKED, shown=Is.WAITING_USER_ANSWER), Is.WAITING_USER_ANSWER),
        (replace(ASKED, record=RUNNING), Is.PROCESSING),
        (replace(ASKED, record=RUNNING, shown=Is.WAITING_USER_ANSWER), Is.WAITING_USER_ANSWER),
        (replace(ASKED, record=OVER, settled=False), Is.COMPLETED),
        (replace(ASKED, record=OVER, shown=Is.WAITING_USER_ANSWER), Is.WAITING_USER_ANSWER),
        (replace(ASKED, record=OVER, shown=Is.UNKNOWN), Is.COMPLETED),
        (replace(ASKED, record=OVER, shown=Is.PROCESSING), Is.COMPLETED),
        (replace(ASKED, record=OVER, shown=Is.PROCESSING, disagree=True), Is.PROCESSING),
        (replace(ASKED, record=RUNNING, shown=Is.IDLE, disagree=True), Is.PROCESSING),
        (replace(ASKED, record=STOPPED, shown=Is.PROCESSING), Is.PROCESSING),
        (replace(ASKED, record=STOPPED, shown=Is.COMPLETED), Is.COMPLETED),
        (replace(ASKED, record=STOPPED, shown=Is.UNKNOWN), Is.COMPLETED),
    ],
)
def test_decide_status(seen: StatusEvidence, status: Is) -> None:
    assert decide_status(seen) is status
