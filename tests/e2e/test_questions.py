"""What the real agents ask: permissions in the middle of a turn, and dialogs before the first one."""

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.desk import Desk, desk
from tests.e2e.orders import orders
from tests.e2e.rig import CLAUDE, CODEX, OLDER_CODEX, Cast, each_cli

pytestmark = pytest.mark.e2e_all


@each_cli
def test_a_permission_prompt_is_reported_and_can_be_answered(cast: Cast) -> None:
    with desk(cast) as agent:
        agent.open(permissions="ask")
        for number in (1, 2):
            made = agent.rig.project / f"made-{number}.txt"
            agent.send(
                f"Make it.\n{orders({'command': f'touch {made.name}', 'ask': True}, {'text': f'Made {number}.'})}"
            )
            # a question can be seen before all of its answers are drawn
            agent.until(lambda found: found["status"] == "waiting_user_answer" and bool(found["accept_key"]))
            assert not made.exists(), "it waits for an answer"
            assert agent.output("last") == ""
            agent.accept()
            agent.until(lambda found: found["status"] == "completed")
            assert made.exists()
            assert agent.output("last") == f"Made {number}."
        refused = agent.http.post(f"/terminals/{agent.terminal}/key", params={"key": "accept"})
        assert refused.status_code == 409, "a yes is only given to a question"


def test_codex_trusts_the_runs_directory_and_declines_an_update() -> None:
    with desk(CODEX) as agent:
        config = codex_home(agent) / "config.toml"
        config.write_text(config.read_text().replace("check_for_update_on_startup = false\n", ""))
        word = {"latest_version": "9.9.9", "last_checked_at": "2099-01-01T00:00:00Z", "dismissed_version": None}
        (codex_home(agent) / "version.json").write_text(json.dumps(word))
        assert agent.open(args=["-c", "check_for_update_on_startup=true"])["status"] == "idle"
        assert agent.order({"text": "Here."}).answer == "Here."
        assert "trust_level" not in config.read_text(), "the user's settings are never edited"


def test_an_older_codex_without_a_login_says_so() -> None:
    """The newest one is in test_starts.py, in a whole run."""
    with desk(OLDER_CODEX) as agent:
        (codex_home(agent) / "config.toml").write_text("[analytics]\nenabled = false\n")
        found = agent.open()
        assert found["status"] == "waiting_user_answer"
        assert "codex login" in found["reason"]


def test_the_users_own_codex_instructions_stay() -> None:
    with desk(CODEX) as agent:
        config = codex_home(agent) / "config.toml"
        config.write_text('developer_instructions = "Speak \\"plainly\\"."\n' + config.read_text())
        agent.open()
        agent.order({"text": "Plain."})
        told = str([item for item in agent.rig.model.turns[-1].body["input"] if item.get("role") == "developer"])
        assert 'Speak "plainly".' in told
        assert "programmer" in told.lower()


def test_claude_code_with_a_login_does_not_choose_who_pays() -> None:
    with desk(CLAUDE) as agent:
        known = agent.rig.home / ".claude.json"
        known.write_text(json.dumps(json.loads(known.read_text()) | {"oauthAccount": {"emailAddress": "a@localhost"}}))
        found = agent.open()
        assert found["status"] == "waiting_user_answer"
        assert "API key" in found["reason"]


def test_a_program_that_is_not_there_is_named() -> None:
    with desk(CODEX) as agent:
        empty = agent.rig.home / "empty"
        empty.mkdir()
        for name in ("tmux", "sh", "env"):
            (empty / name).symlink_to(Path(str(shutil.which(name))))
        params = {"provider": "codex", "agent_profile": "programmer", "working_directory": str(agent.rig.project)}
        made = agent.http.post("/sessions", params=params, json={"env_vars": {"PATH": str(empty)}})
        assert made.status_code >= 400
        assert "codex was not found" in made.text


def codex_home(agent: Desk) -> Path:
    return agent.rig.home / ".codex"
