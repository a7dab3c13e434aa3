"""`quintet run` with real Codex, ended in every phase and started again: it goes on where it was, to PASS."""

import signal
import subprocess
import time

import pytest

from quintet.roles import BY_NAME, Role
from tests.e2e.brains import Answer, RoleBrain
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, Rig, rig, texts

pytestmark = pytest.mark.e2e

CODEX = Cast(codex="0.166.0")
PHASES = ("analyst", "peer_analyst", "programmer", "peer_programmer", "tester")
MOMENTS = ("typed", "asked", "written", "asked", "typed")
"""how far a turn has come: its prompt is on its way, the model thinks, the response is there"""
SECONDS = 60.0
DELAY = 0.3
"""seconds that the model thinks, so that a phase lasts long enough to be met"""
SLOW = {
    name: [Answer(answer.text, answer.before, delay=DELAY) for answer in answers]
    for name, answers in FAIL_THEN_PASS.items()
}


def wait_for(run: Rig, process: subprocess.Popen[str], phase: str, moment: str) -> None:
    """Until a role's first turn has come so far."""
    role = BY_NAME[phase]
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        if reached(run, role, moment):
            return
        time.sleep(0.02)
    raise AssertionError(f"{phase}: {moment}: was not reached")


def reached(run: Rig, role: Role, moment: str) -> bool:
    try:
        sent = any(event["event"] == "prompt_sent" and event["role"] == role.name for event in run.journal())
    except (FileNotFoundError, ValueError):
        return False  # not begun yet, or read in the middle of a write
    asked = any(role.response_file in request.prompt for request in run.model.turns)
    written = (run.project / ".tmp/agent-responses" / role.response_file).exists()
    return sent and {"typed": True, "asked": asked, "written": written}[moment]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=lambda sign: sign.name)
def test_ended_in_every_phase_and_resumed(sign: signal.Signals) -> None:
    with rig(CODEX, RoleBrain(SLOW)) as run:
        codes = []
        for phase, moment in zip(PHASES, MOMENTS, strict=True):
            process = run.start()
            wait_for(run, process, phase, moment)
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
        assert run.left() == {}


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
