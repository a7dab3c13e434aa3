"""`quintet run` with real Codex, ended in every phase and started again: it continues where it was, to PASS."""

import signal

import pytest

from quintet.roles import BY_NAME, Role
from tests.e2e.brains import Answer, RoleBrain
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import CODEX, Rig, rig, texts

pytestmark = pytest.mark.e2e_all

PHASES = ("analyst", "peer_analyst", "programmer", "peer_programmer", "tester")
MOMENTS = ("typed", "asked", "written", "asked", "typed")
"""how far a turn has come: its prompt is on its way, the model thinks, the response is there"""
DELAY = 0.3
"""seconds that the model thinks, because a phase has to last long enough to be met"""
SLOW = {
    name: [Answer(answer.text, answer.before, delay=DELAY) for answer in answers]
    for name, answers in FAIL_THEN_PASS.items()
}


def has_reached(run: Rig, role: Role, moment: str) -> bool:
    sent = any(event["role"] == role.name for event in run.events("prompt_sent"))
    asked = any(role.response_file in request.prompt for request in run.model.turns)
    written = (run.project / ".tmp/agent-responses" / role.response_file).exists()
    return sent and {"typed": True, "asked": asked, "written": written}[moment]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=lambda sign: sign.name)
def test_ended_in_every_phase_and_resumed(sign: signal.Signals) -> None:
    with rig(CODEX, RoleBrain(SLOW)) as run:
        codes = []
        for phase, moment in zip(PHASES, MOMENTS, strict=True):
            process = run.start()
            role = BY_NAME[phase]
            run.until(lambda: has_reached(run, role, moment), f"{phase}: {moment}", process=process)  # noqa: B023
            process.send_signal(sign)
            code, said = run.finish(process)
            codes.append(code)
            assert run.state["final_status"] == "RUNNING", said
        assert codes == [130 if sign is signal.SIGINT else -9] * len(PHASES)

        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 0, said
        assert run.state["final_status"] == "PASS"
        assert run.events("reminded") == []
        received = texts([request.prompt for request in run.model.turns])
        assert received == texts(run.sent_prompts()), "no prompt was lost, and none was sent twice"
        assert run.left() == {}


def test_ended_while_its_terminals_are_created() -> None:
    with rig(CODEX, RoleBrain(FAIL_THEN_PASS)) as run:
        process = run.start()
        run.until(lambda: len(run.living()) >= 4, "some terminals are there", process=process)
        process.send_signal(signal.SIGKILL)
        run.finish(process)
        code, said = run.run(CLEANUP_ON_EXIT="1")
        assert code == 0, said
        assert run.state["final_status"] == "PASS"
