"""A tester of the real CLIs that mends the code itself and says PASS is caught, and its change is undone."""

import pytest

from tests.e2e.brains import TEST_PASS, Answer, RoleBrain, Script
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, rig

pytestmark = pytest.mark.e2e

CASTS = {"codex-0.166.0": Cast(codex="0.166.0"), "claude-2.1.325": Cast(claude="2.1.325")}
WRONG: Script = {**FAIL_THEN_PASS, "programmer_summary.md": FAIL_THEN_PASS["programmer_summary.md"][:1]}
"""the only implementation is wrong"""
SETTINGS = {"MAX_ROUNDS": "1", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1", "CLEANUP_ON_EXIT": "1"}


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_a_tester_that_mends_the_code_does_not_pass(cast: Cast) -> None:
    cheat = Answer(TEST_PASS, before=("echo 42 > answer.txt && cat answer.txt",))
    with rig(cast, RoleBrain({**WRONG, "test_result.md": [cheat]})) as run:
        code, said = run.run(**SETTINGS)
        assert code == 1, said
        events = run.journal()
        caught = [event for event in events if event["event"] == "guard_violation"]
        assert [(one["role"], one["undone"], one["paths"]) for one in caught] == [
            ("tester", True, [{"path": "answer.txt", "change": "changed"}])
        ] * 2
        verdicts = [(event["verdict"], event["counts"]) for event in events if event["event"] == "test_judged"]
        assert verdicts == [("PASS", False), ("FAIL", True)]
        assert (run.project / "answer.txt").read_text() != "42\n"
        assert "answer.txt" in run.model.turns[-1].prompt, "it is told what was undone"
