"""`quintet run` with the agents that speak the Agent Client Protocol: FAIL, then PASS, archived, committed."""

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import RoleBrain
from tests.e2e.install import ensure_claude_acp
from tests.e2e.project import FAIL_THEN_PASS, long_notes, long_task
from tests.e2e.rig import Cast, rig
from tests.e2e.test_loops import CLAUDE, CODEX, POST, check_pass
from tests.sandbox.need import need_bubblewrap

pytestmark = pytest.mark.e2e

MIXED = Cast(
    codex=CODEX,
    claude=CLAUDE,
    acp=tuple(AGENTS),
    agents={
        "analyst": {"provider": "gemini_cli"},
        "peer_analyst": {"provider": "codex"},
        "programmer": {"provider": "opencode_cli"},
        "peer_programmer": {"provider": "claude_code"},
        "tester": {"provider": "copilot_cli"},
    },
)
IN_SANDBOX = Cast(
    codex=CODEX,
    acp=tuple(AGENTS),
    agents={
        "analyst": {"provider": "copilot_cli"},
        "peer_analyst": {"provider": "gemini_cli"},
        "programmer": {"provider": "qwen_code"},
        "peer_programmer": {"provider": "codex"},
        "tester": {"provider": "opencode_cli"},
    },
)
OWN = Cast(
    programs_of_own=(ensure_claude_acp,),
    more={"provider": "my-agent", "providers": {"my-agent": {"command": ["claude-agent-acp"]}}},
)
"""an agent of which the code knows nothing; it finds its model as Claude Code does"""


def providers(cast: Cast) -> set[str]:
    return {agent["provider"] for agent in cast.agents.values()}


def check_long_task(cast: Cast, names: set[str]) -> None:
    """A whole run with a task of 150 kB, which arrives byte for byte."""
    notes = long_notes()
    with rig(cast, RoleBrain(FAIL_THEN_PASS)) as run:
        (run.home / "task.md").write_text(long_task(notes))
        code, said = run.run(**POST, PROMPT="", PROMPT_FILE=str(run.home / "task.md"))
        assert code == 0, said
        check_pass(run, names)
        assert notes in run.model.turns[0].prompt


@pytest.mark.parametrize("name", AGENTS)
def test_each_alone_with_a_long_task(name: str) -> None:
    check_long_task(Cast(acp=(name,)), {name})


def test_with_codex_and_claude_code_in_one_run() -> None:
    check_long_task(MIXED, providers(MIXED))


def test_each_in_a_sandbox() -> None:
    need_bubblewrap()
    with rig(IN_SANDBOX, RoleBrain(FAIL_THEN_PASS)) as run:
        code, said = run.run(**POST, SANDBOX="on")
        assert code == 0, said
        check_pass(run, providers(IN_SANDBOX))


def test_an_agent_that_only_the_settings_know() -> None:
    with rig(OWN, RoleBrain(FAIL_THEN_PASS)) as run:
        code, said = run.run(**POST)
        assert code == 0, said
        check_pass(run, {"my-agent"})
