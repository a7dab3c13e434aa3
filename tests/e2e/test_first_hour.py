"""A new user's first hour with the real Codex and the real OpenSpec, from an empty project to a merged commit."""

import json
from dataclasses import replace

import pytest

from tests.e2e.brains import RoleBrain
from tests.e2e.project import CHANGE, FAIL_THEN_PASS, VERIFY, git
from tests.e2e.rig import CODEX, rig
from tests.wheel.package import fill_in

pytestmark = pytest.mark.e2e_all

TASK = "tasks/write-the-answer-down.md"


def test_from_an_empty_project_to_a_commit() -> None:
    with rig(CODEX, RoleBrain(FAIL_THEN_PASS), {"OPENSPEC_TELEMETRY": "0"}) as run:
        me = replace(run, project=run.project.with_name("fresh"))
        me.project.mkdir()
        git(me.project, "init", "--quiet", "--initial-branch=main")
        git(me.project, "config", "user.name", "Test")
        git(me.project, "config", "user.email", "test@localhost")
        git(me.project, "commit", "--quiet", "--allow-empty", "--message", "Begin")

        def do(*words: str, expected: int = 0) -> str:
            code, said = me.quintet(*words)
            assert code == expected, f"quintet {' '.join(words)}: {code}\n{said}"
            return said

        said = do("init", "--yes")
        assert "found          codex: " in said
        assert "openspec/, " in said
        for skill in ("explore", "ff-change", "apply-change"):
            assert (me.project / f".agents/skills/openspec-{skill}/SKILL.md").is_file()
        assert not (me.home / ".config/openspec").exists(), "the user's own settings of OpenSpec stay as they are"
        before = git(me.project, "status", "--porcelain")
        assert "Nothing was changed." in do("init", "--yes")
        assert git(me.project, "status", "--porcelain") == before

        do("new", "Write the answer down")
        do("lint", TASK, expected=1)
        fill_in(me.project / TASK, "P1: answer.txt holds 42 and nothing else.", "Run: cat answer.txt\nExpected: 42")
        assert "nothing is missing" in do("lint", TASK)

        config = me.project / "quintet.json"
        post = {"openspec_archive": True, "git_commit": True, "git_commit_comment": "Write the answer down"}
        config.write_text(json.dumps(json.loads(config.read_text()) | {"verify_cmd": VERIFY, "post_processing": post}))
        git(me.project, "add", "--all")
        git(me.project, "commit", "--quiet", "--message", "Set up Quintet")
        checks = {one["name"]: one["level"] for one in json.loads(do("doctor", "--json"))["checks"]}
        assert set(checks.values()) == {"ok"}, checks
        assert "The first prompt goes to analyst" in do("run", TASK, "--dry-run")
        assert not (me.project / ".tmp").exists()

        do("run", TASK, "--cleanup-on-exit")
        assert "PASS" in do("runs")
        assert not (me.project / "answer.txt").exists(), "the run has a worktree of its own"
        assert "+1 -0  answer.txt" in do("diff", "--stat")
        do("merge")
        assert (me.project / "answer.txt").read_text() == "42\n"
        assert list((me.project / "openspec/changes/archive").glob(f"*-{CHANGE}"))
        assert git(me.project, "log", "-1", "--format=%s") == "Write the answer down"
        assert git(me.project, "status", "--porcelain") == ""
        do("discard")
        assert git(me.project, "branch", "--format=%(refname:short)") == "main"
        assert me.left() == {}
