"""Testers of the real CLIs that say PASS without having earned it: asked once more, and then that is a FAIL."""

from typing import Any

import pytest

from tests.e2e.brains import TEST_PASS, Answer, RoleBrain, Script
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, Rig, each_cli, each_release, rig

pytestmark = pytest.mark.e2e_all

WRONG: Script = {**FAIL_THEN_PASS, "programmer_summary.md": FAIL_THEN_PASS["programmer_summary.md"][:1]}
"""the only implementation is wrong"""
RIGHT: Script = {**FAIL_THEN_PASS, "programmer_summary.md": FAIL_THEN_PASS["programmer_summary.md"][-1:]}
"""the first implementation is right"""
SETTINGS = {"MAX_ROUNDS": "1", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1", "CLEANUP_ON_EXIT": "1"}


def judged(run: Rig) -> list[tuple[str, bool]]:
    return [(event["verdict"], event["counts"]) for event in run.events("test_judged")]


def commands(run: Rig, role: str) -> list[list[dict[str, Any]]]:
    """Return the commands of each turn of a role, without the one that writes the response."""
    return [
        [one for one in event["actions"]["items"] if ".tmp/agent-responses" not in one["text"]]
        for event in run.events("reply_taken")
        if event["role"] == role
    ]


@each_cli
def test_a_tester_that_mends_the_code_does_not_pass(cast: Cast) -> None:
    cheat = Answer(TEST_PASS, before=("echo 42 > answer.txt && cat answer.txt",))
    with rig(cast, RoleBrain({**WRONG, "test_result.md": [cheat]})) as run:
        code, said = run.run(**SETTINGS)
        assert code == 1, said
        caught = [(one["role"], one["undone"], one["paths"]) for one in run.events("guard_violation")]
        assert caught == [("tester", True, [{"path": "answer.txt", "change": "changed"}])] * 2
        assert judged(run) == [("PASS", False), ("FAIL", True)]
        assert (run.project / "answer.txt").read_text() != "42\n"
        assert "answer.txt" in run.model.turns[-1].prompt, "it is told what was undone"


@each_cli
def test_a_pass_without_a_command_is_a_fail(cast: Cast) -> None:
    with rig(cast, RoleBrain({**RIGHT, "test_result.md": [Answer(TEST_PASS)]})) as run:
        code, said = run.run(**SETTINGS)
        assert code == 1, said
        assert judged(run) == [("PASS", False), ("FAIL", True)]
        assert commands(run, "tester") == [[], []]
        assert "you have run nothing in this turn" in run.model.turns[-1].prompt
        assert commands(run, "peer_programmer") == [[{"kind": "command", "text": "cat answer.txt", "exit_code": 0}]]


@each_release
def test_a_tester_that_runs_the_scenario_when_asked_again_passes(cast: Cast) -> None:
    script = {**RIGHT, "test_result.md": [Answer(TEST_PASS), Answer(TEST_PASS, before=("cat answer.txt; exit 3",))]}
    with rig(cast, RoleBrain(script)) as run:
        code, said = run.run(**SETTINGS)
        assert code == 0, said
        assert judged(run) == [("PASS", False), ("PASS", True)]
        assert commands(run, "tester") == [[], [{"kind": "command", "text": "cat answer.txt; exit 3", "exit_code": 3}]]
