"""Starts of the real agents that fail: the reason is told, by doctor beforehand and by the run that meets it."""

import json
import os

import pytest

from tests.e2e.orders import ordered
from tests.e2e.project import TASK
from tests.e2e.rig import CLAUDE, CODEX, Cast, each_cli, rig

pytestmark = pytest.mark.e2e_all

AS_ROOT = "cannot be used with root/sudo"
as_root = pytest.mark.skipif(os.getuid() != 0, reason="Claude Code refuses its unattended mode to root alone")


@as_root
def test_claude_code_as_root_says_why_it_does_not_start() -> None:
    with rig(CLAUDE, ordered, {"IS_SANDBOX": ""}) as run:
        (run.project / "task.md").write_text(TASK)
        code, said = run.quintet("doctor")
        assert code == 1
        assert AS_ROOT in " ".join(said.split()), said
        assert "IS_SANDBOX=1" in said
        code, said = run.quintet("run", "--plain", "task.md")
        assert code == 1
        assert (
            f"did not start (its program has exited with code 1); it said: --dangerously-skip-permissions {AS_ROOT}"
            in said
        )
        (folder,) = run.project.glob(".tmp/*/journal.jsonl")
        stopped = json.loads(folder.read_text().splitlines()[-1])
        assert stopped["event"] == "run_stopped"
        assert AS_ROOT in stopped["reason"]
        report = next(path for path in folder.parent.iterdir() if path.suffix == ".md" and "report" in path.name)
        assert AS_ROOT in report.read_text()
        assert "run task.md" in report.read_text(), "the advice names a command that finds its task"
        assert run.left() == {}
        code, _ = run.quintet("doctor", IS_SANDBOX="1")
        assert code == 0


@each_cli
def test_doctor_starts_the_real_clis_with_the_flags_of_a_run(cast: Cast) -> None:
    with rig(cast, ordered) as run:
        assert run.quintet("doctor")[0] == 0
        arguments = {"agents": {"tester": {"args": ["--no-such-flag"]}}}
        (run.project / "quintet.json").write_text(json.dumps(arguments))
        code, said = run.quintet("doctor")
        assert code == 1
        assert "tester: it does not start: error: " in " ".join(said.split()), said
        assert "--no-such-flag" in said
        assert run.model.turns == [], "the model hears nothing of it"


def test_codex_without_a_login_is_told_of_at_once_and_ends_the_run() -> None:
    with rig(CODEX, ordered) as run:
        (run.home / ".codex/config.toml").write_text("check_for_update_on_startup = false\n")
        (run.project / "task.md").write_text(TASK)
        code, said = run.quintet("run", "--plain", "task.md")
        assert code == 1
        warned = [line for line in said.splitlines() if "warning: analyst cannot start without you" in line]
        assert len(warned) == 1, said
        assert "Codex is not logged in; run `codex login`" in warned[0]
        assert "nobody did so within 90 s" in said
        assert run.left() == {}, "and nothing is left"


def test_claude_code_without_a_login_ends_the_run_with_its_first_prompt() -> None:
    """It shows no dialog at its start, where it was set up once; there it asks the network first."""
    with rig(CLAUDE, ordered, {"ANTHROPIC_API_KEY": ""}) as run:
        (run.project / "task.md").write_text(TASK)
        code, said = run.quintet("run", "--plain", "task.md", CLEANUP_ON_EXIT="1")
        assert code == 1
        assert "its turn has failed: Not logged in" in said
        assert "attach analyst) or with the CLI by itself, then start again" in said
        assert run.model.turns == []
        assert run.left() == {}
