"""`quintet run` with its own server, real agents and the real OpenSpec: FAIL, then PASS, archived, committed."""

import signal

import pytest

from tests.e2e.acp_agents import AGENTS
from tests.e2e.brains import Answer, RoleBrain, response_path
from tests.e2e.install import ensure_claude_acp
from tests.e2e.project import CHANGE, FAIL_THEN_PASS, git, long_notes, long_task
from tests.e2e.rig import BOTH, CLAUDE, CODEX, OLDER_CODEX, RUN_SECONDS, Cast, Rig, rig, texts
from tests.sandbox.need import need_bubblewrap

SOLO = {**BOTH, **{name: Cast(acp=(name,)) for name in AGENTS}}
MIXED = Cast(
    codex=CODEX.codex,
    claude=CLAUDE.claude,
    acp=tuple(AGENTS),
    agents={
        "analyst": {"provider": "gemini_cli"},
        "peer_analyst": {"provider": "codex"},
        "programmer": {"provider": "opencode_cli"},
        "peer_programmer": {"provider": "claude_code"},
        "tester": {"provider": "copilot_cli"},
    },
)
OWN = Cast(
    programs_of_own=(ensure_claude_acp,),
    more={"provider": "my-agent", "providers": {"my-agent": {"command": ["claude-agent-acp"]}}},
)
"""an agent that only the settings know; it finds its model as Claude Code does"""
POST = {
    "POST_OPENSPEC_ARCHIVE": "1",
    "POST_GIT_COMMIT": "1",
    "POST_GIT_COMMIT_COMMENT": "Write the answer down",
    "CLEANUP_ON_EXIT": "1",
}
ONE_REVIEW = {"MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1"}


@pytest.mark.e2e
@pytest.mark.parametrize("cast", SOLO.values(), ids=SOLO)
def test_a_run_that_is_killed_resumes_in_the_sandbox(cast: Cast) -> None:
    """The run, its terminals and its agents are killed after the FAIL, while the programmer works."""
    need_bubblewrap()
    brain = RoleBrain(hanging_programmer())
    with rig(cast, brain) as run:
        process = run.start(**POST, **ONE_REVIEW, SANDBOX="on")
        run.until(lambda: brain.asked["programmer_summary.md"] >= 2, "the programmer works", process=process)
        run.kill_everything()
        assert run.finish(process)[0] == -signal.SIGKILL
        assert run.state["final_status"] == "RUNNING"

        brain.forget_turns()
        code, said = run.run(**POST, **ONE_REVIEW, SANDBOX="on")
        assert code == 0, said
        created = [event for event in run.events("terminal_created") if event["role"] == "programmer"]
        assert [bool(event["continues"]) for event in created] == [False, True], said
        check_conversation_continued(run)
        check_result(run, {cast.provider})
        assert len(run.model.turns) == 9, "eight prompts, and that of the killed programmer once more"


def hanging_programmer(times: int = 1) -> dict[str, list[Answer]]:
    """Return a script in which the programmer's second turn lasts for ever, the first `times` times."""
    script = {name: list(answers) for name, answers in FAIL_THEN_PASS.items()}
    wrong, _, right = script["programmer_summary.md"]
    endless = Answer(right.text, right.before, delay=2 * RUN_SECONDS)
    return {**script, "programmer_summary.md": [wrong, *[endless] * times, right]}


def check_conversation_continued(run: Rig) -> None:
    """The new programmer knows what the killed one knew, and gets the whole prompt."""
    asked = [request for request in run.model.turns if "programmer_summary.md" in request.prompt]
    assert asked[0].prompt in asked[-1].prompts
    sent = max((run.archive / "prompts").glob("*-programmer.md")).read_text()
    assert texts([asked[-1].prompt]) == texts([sent])
    assert "refer to your conversation history" not in sent


@pytest.mark.parametrize(
    "cast",
    [
        pytest.param(CODEX, id="codex-0.166.0", marks=pytest.mark.e2e),
        pytest.param(CLAUDE, id="claude-2.1.325", marks=pytest.mark.e2e),
        pytest.param(OLDER_CODEX, id="codex-0.149.0", marks=pytest.mark.e2e_all),
        pytest.param(OWN, id="claude-agent-acp", marks=pytest.mark.e2e_all),
    ],
)
def test_analyst_to_pass(cast: Cast) -> None:
    with rig(cast, RoleBrain(FAIL_THEN_PASS)) as run:
        code, said = run.run(**POST)
        assert code == 0, said
        check_pass(run, {cast.provider or "my-agent"})


@pytest.mark.e2e_all
def test_five_different_agents_get_a_long_task_byte_for_byte() -> None:
    notes = long_notes()
    with rig(MIXED, RoleBrain(FAIL_THEN_PASS)) as run:
        (run.home / "task.md").write_text(long_task(notes))
        code, said = run.run(**POST, PROMPT="", PROMPT_FILE=str(run.home / "task.md"))
        assert code == 0, said
        check_pass(run, {agent["provider"] for agent in MIXED.agents.values()})
        assert notes in run.model.turns[0].prompt


def check_pass(run: Rig, providers: set[str]) -> None:
    """The run has sent each prompt once, and has done its work."""
    assert texts([request.prompt for request in run.model.turns]) == texts(run.sent_prompts())
    assert len(run.model.turns) == 14
    check_result(run, providers)


def check_result(run: Rig, providers: set[str]) -> None:
    """The run has done its work, and nothing but that."""
    state, events = run.state, [event["event"] for event in run.journal()]
    assert (state["final_status"], state["current_round"]) == ("PASS", 2)
    odd = [request.prompt for request in run.model.turns if response_path(request.prompt) is None]
    assert "reminded" not in events, odd
    assert "guard_released" not in events
    assert "guard_violation" not in events
    warned = [event["text"] for event in run.events("warned")]
    assert not [text for text in warned if "had left" in text], "nothing of an honest turn is ended"
    assert "hand_typed" not in events, "all that was typed was typed by the run"
    assert {terminal["provider"] for terminal in state["terminals"].values()} == providers

    assert (run.project / "answer.txt").read_text() == "42\n"
    assert [path.name for path in (run.project / "openspec/changes/archive").glob(f"*-{CHANGE}")]
    assert git(run.project, "rev-list", "--count", "HEAD") == "2"
    assert git(run.project, "log", "-1", "--format=%s") == "Write the answer down"
    assert git(run.project, "status", "--porcelain") == ""
    assert run.left() == {}, "a run leaves nothing behind, no daemon either"
