"""`quintet run` with real Codex, ended in every phase and started again: it goes on where it was, to PASS."""

import signal
import subprocess
import time

import pytest

from tests.e2e.brains import Answer, RoleBrain
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, Rig, rig, texts

pytestmark = pytest.mark.e2e

CODEX = Cast(codex="0.166.0")
PHASES = ("analyst", "peer_analyst", "programmer", "peer_programmer", "tester")
SECONDS = 60.0
DELAY = 0.3
"""seconds that the model thinks, so that a phase lasts long enough to be met"""
SLOW = {
    name: [Answer(answer.text, answer.before, delay=DELAY) for answer in answers]
    for name, answers in FAIL_THEN_PASS.items()
}


def wait_for_phase(run: Rig, process: subprocess.Popen[str], phase: str) -> None:
    """Until the prompt of that role is on its way."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        try:
            if any(event["event"] == "prompt_sent" and event["role"] == phase for event in run.journal()):
                return
        except (FileNotFoundError, ValueError):
            pass  # not begun yet, or read in the middle of a write
        time.sleep(0.02)
    raise AssertionError(f"{phase} was not reached")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=lambda sign: sign.name)
def test_ended_in_every_phase_and_resumed(sign: signal.Signals) -> None:
    with rig(CODEX, RoleBrain(SLOW)) as run:
        codes = []
        for number, phase in enumerate(PHASES):
            process = run.start()
            wait_for_phase(run, process, phase)
            # at another moment of the turn each time: while it is typed, while the model thinks, at the answer
            time.sleep(number * 0.2)
            process.send_signal(sign)
            said, _ = process.communicate(timeout=SECONDS)
            codes.append(process.returncode)
            assert run.state["final_status"] == "RUNNING", said
        assert codes == [130 if sign is signal.SIGINT else -9] * len(PHASES)

        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 0, said
        assert run.state["final_status"] == "PASS"
        events = [event["event"] for event in run.journal()]
        assert "reminded" not in events
        received = texts([request.prompt for request in run.model.turns])
        assert received == texts(run.sent_prompts()), "no prompt was lost, and none was sent twice"
        assert run.living() == {}


def test_ended_while_its_terminals_are_created() -> None:
    with rig(CODEX, RoleBrain(FAIL_THEN_PASS)) as run:
        process = run.start()
        deadline = time.monotonic() + SECONDS
        while len(run.living()) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=SECONDS)
        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 0, said
        assert run.state["final_status"] == "PASS"
