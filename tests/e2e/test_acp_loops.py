"""`quintet run` with the agents that speak the Agent Client Protocol: FAIL, then PASS, archived, committed."""

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import RoleBrain
from tests.e2e.project import FAIL_THEN_PASS, long_notes, long_task
from tests.e2e.rig import Cast, rig
from tests.e2e.test_loops import CLAUDE, CODEX, POST, check_pass

pytestmark = pytest.mark.e2e

EVERYBODY = Cast(
    codex=CODEX,
    claude=CLAUDE,
    acp=tuple(AGENTS),
    agents={
        "analyst": {"provider": "codex"},
        "peer_analyst": {"provider": "opencode_cli"},
        "programmer": {"provider": "copilot_cli"},
        "peer_programmer": {"provider": "qwen_code"},
        "tester": {"provider": "claude_code"},
    },
)


@pytest.mark.parametrize("name", AGENTS)
def test_each_alone_with_a_long_task(name: str) -> None:
    notes = long_notes()
    with rig(Cast(acp=(name,)), RoleBrain(FAIL_THEN_PASS)) as run:
        (run.home / "task.md").write_text(long_task(notes))
        code, said = run.run(**POST, PROMPT="", PROMPT_FILE=str(run.home / "task.md"))
        assert code == 0, said
        check_pass(run, {name})
        assert notes in run.model.turns[0].prompt, "byte for byte"
