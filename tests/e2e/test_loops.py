"""`quintet run` with its own server, the real agents and the real OpenSpec: FAIL, then PASS, archived, committed."""

import pytest

from tests.e2e.brains import RoleBrain, response_path
from tests.e2e.project import CHANGE, FAIL_THEN_PASS, git
from tests.e2e.rig import Cast, Rig, rig, texts

pytestmark = pytest.mark.e2e

CODEX, CLAUDE = "0.166.0", "2.1.325"
MIXED = {role: {"provider": "claude_code"} for role in ("peer_analyst", "peer_programmer")}
CASTS = {
    "codex-0.166.0": Cast(codex=CODEX),
    "codex-0.149.0": Cast(codex="0.149.0"),
    "claude-2.1.325": Cast(claude=CLAUDE),
    "both": Cast(codex=CODEX, claude=CLAUDE, agents=MIXED),
}
POST = {
    "POST_OPENSPEC_ARCHIVE": "1",
    "POST_GIT_COMMIT": "1",
    "POST_GIT_COMMIT_COMMENT": "Write the answer down",
    "CLEANUP_ON_EXIT": "1",
}


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_analyst_to_pass(cast: Cast) -> None:
    with rig(cast, RoleBrain(FAIL_THEN_PASS)) as run:
        code, said = run.run(**POST)
        assert code == 0, said
        check_pass(run, {"codex", "claude_code"} if cast.agents else {cast.provider})


def check_pass(run: Rig, providers: set[str]) -> None:
    """The run has done its work, and nothing but that."""
    state, events = run.state, [event["event"] for event in run.journal()]
    assert (state["final_status"], state["current_round"]) == ("PASS", 2)
    odd = [request.prompt for request in run.model.turns if response_path(request.prompt) is None]
    assert "reminded" not in events, odd
    assert "guard_released" not in events
    assert "guard_violation" not in events
    warned = [event["text"] for event in run.journal() if event["event"] == "warned"]
    assert not [text for text in warned if "had left" in text], "nothing of an honest turn is ended"
    assert "hand_typed" not in events, "all that was typed was typed by the run"
    assert texts([request.prompt for request in run.model.turns]) == texts(run.sent_prompts())
    assert len(run.model.turns) == 14
    assert {terminal["provider"] for terminal in state["terminals"].values()} == providers

    assert (run.project / "answer.txt").read_text() == "42\n"
    assert [path.name for path in (run.project / "openspec/changes/archive").glob(f"*-{CHANGE}")]
    assert git(run.project, "rev-list", "--count", "HEAD") == "2"
    assert git(run.project, "log", "-1", "--format=%s") == "Write the answer down"
    assert git(run.project, "status", "--porcelain") == ""
    assert run.left() == {}, "a run leaves nothing behind, no daemon either"
