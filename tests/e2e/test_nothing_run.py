"""A tester of the real CLIs that runs nothing and says PASS is asked once more, and then that is a FAIL."""

from typing import Any

import pytest

from tests.e2e.brains import TEST_PASS, Answer, RoleBrain, Script
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, Rig, rig

pytestmark = pytest.mark.e2e

CASTS = {
    "codex-0.166.0": Cast(codex="0.166.0"),
    "codex-0.149.0": Cast(codex="0.149.0"),
    "claude-2.1.325": Cast(claude="2.1.325"),
}
RIGHT: Script = {**FAIL_THEN_PASS, "programmer_summary.md": FAIL_THEN_PASS["programmer_summary.md"][-1:]}
"""the first implementation is right"""
SETTINGS = {"MAX_ROUNDS": "1", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1", "CLEANUP_ON_EXIT": "1"}


def judged(run: Rig) -> list[tuple[str, bool]]:
    return [(event["verdict"], event["counts"]) for event in run.journal() if event["event"] == "test_judged"]


def commands(run: Rig, role: str) -> list[list[dict[str, Any]]]:
    """The commands of each turn of a role, without the one that writes the response."""
    return [
        [one for one in event["actions"]["items"] if ".tmp/agent-responses" not in one["text"]]
        for event in run.journal()
        if event["event"] == "reply_taken" and event["role"] == role
    ]


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_a_pass_without_a_command_is_a_fail(cast: Cast) -> None:
    with rig(cast, RoleBrain({**RIGHT, "test_result.md": [Answer(TEST_PASS)]})) as run:
        code, said = run.run(**SETTINGS)
        assert code == 1, said
        assert judged(run) == [("PASS", False), ("FAIL", True)]
        assert commands(run, "tester") == [[], []]
        assert "you have run nothing in this turn" in run.model.turns[-1].prompt
        assert commands(run, "peer_programmer") == [[{"kind": "command", "text": "cat answer.txt", "exit_code": 0}]]


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_a_tester_that_runs_the_scenario_when_asked_again_passes(cast: Cast) -> None:
    script = {**RIGHT, "test_result.md": [Answer(TEST_PASS), Answer(TEST_PASS, before=("cat answer.txt; exit 3",))]}
    with rig(cast, RoleBrain(script)) as run:
        code, said = run.run(**SETTINGS)
        assert code == 0, said
        assert judged(run) == [("PASS", False), ("PASS", True)]
        assert commands(run, "tester") == [[], [{"kind": "command", "text": "cat answer.txt; exit 3", "exit_code": 3}]]
