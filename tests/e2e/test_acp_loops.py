"""`quintet run` with the agents that speak the Agent Client Protocol: FAIL, then PASS, archived, committed."""

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import RoleBrain
from tests.e2e.project import FAIL_THEN_PASS, TASK
from tests.e2e.rig import Cast, Rig, rig, texts
from tests.e2e.test_loops import CLAUDE, CODEX, POST, check_pass

pytestmark = pytest.mark.e2e

EVERYBODY = Cast(
    codex=CODEX,
    claude=CLAUDE,
    acp=tuple(AGENTS),
    agents={
        "analyst": {"provider": "gemini_cli"},
        "peer_analyst": {"provider": "opencode_cli"},
        "programmer": {"provider": "copilot_cli"},
        "peer_programmer": {"provider": "qwen_code"},
        "tester": {"provider": "claude_code"},
    },
)


@pytest.mark.parametrize("name", AGENTS)
def test_each_alone(name: str) -> None:
    with rig(Cast(acp=(name,)), RoleBrain(FAIL_THEN_PASS)) as run:
        code, said = run.run(**POST)
        assert code == 0, said
        check_pass(run, {name})
