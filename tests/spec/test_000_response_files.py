"""Seed 000, the scenarios that the core decides: paths and the block that names them."""

from pathlib import Path

from quintet.layout import RESPONSE_DIR, response_path_for
from quintet.loop.decide.flow import Ask
from quintet.loop.decide.prompts import Prompts
from quintet.roles import ANALYST, ROLES
from tests.loop.runs import TASK, WD, new_state, settings

FILES = {
    "analyst": "analyst_summary.md",
    "analyst_review": "analyst_review.md",
    "programmer": "programmer_summary.md",
    "programmer_review": "programmer_review.md",
    "tester": "test_result.md",
}


def instruction(step: Ask) -> str:
    prompt = Prompts(settings(), TASK, new_state(settings())).build(step)
    return prompt.partition("RESPONSE FILE INSTRUCTION")[2]


def test_000_each_role_resolves_to_the_correct_file() -> None:
    assert Path(".tmp/agent-responses") == RESPONSE_DIR
    assert {role.output: response_path_for(role, WD) for role in ROLES} == {
        output: WD / RESPONSE_DIR / name for output, name in FILES.items()
    }


def test_000_analyst_prompt_includes_file_instruction() -> None:
    assert "/project/.tmp/agent-responses/analyst_summary.md" in instruction(Ask(ANALYST, 1))


def test_000_all_five_agent_roles_have_file_instructions() -> None:
    for role in ROLES:
        assert f"/project/.tmp/agent-responses/{FILES[role.output]}" in instruction(Ask(role, 1))
