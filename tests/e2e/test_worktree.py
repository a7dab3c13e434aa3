"""The real CLIs in a worktree that they have never seen: the loop passes, and the checkout is left alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.brains import Answer, RoleBrain
from tests.e2e.project import CHANGE, FAIL_THEN_PASS, git
from tests.e2e.rig import Cast, Rig, each_cli, rig
from tests.e2e.test_loops import POST

pytestmark = pytest.mark.e2e_all


def checkout(run: Rig) -> list[str]:
    """What git knows of the user's checkout, and all of its files."""
    words = (("status", "--porcelain=v2", "--branch"), ("stash", "list"), ("rev-parse", "HEAD"), ("ls-files", "-s"))
    files = (path for path in run.project.rglob("*") if path.is_file() and ".git" not in path.parts)
    return [*(git(run.project, *word) for word in words), *(f"{path} {path.read_bytes()!r}" for path in sorted(files))]


def tree_of(run: Rig) -> Path:
    (tree,) = (path for path in Path(run.env["XDG_STATE_HOME"], "quintet/worktrees").iterdir() if path.is_dir())
    return tree


def events_in(tree: Path) -> list[dict[str, Any]]:
    (journal,) = tree.glob(".tmp/*/journal.jsonl")
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


@each_cli
def test_the_loop_passes_on_a_branch(cast: Cast) -> None:
    with rig(cast, RoleBrain(FAIL_THEN_PASS)) as run:
        before = checkout(run)
        code, said = run.run(**POST, WORKSPACE="worktree")
        assert code == 0, said
        assert checkout(run) == before
        tree = tree_of(run)
        events = [event["event"] for event in events_in(tree)]
        assert not {"reminded", "guard_released", "guard_violation", "warned"}.intersection(events)
        branch = git(tree, "symbolic-ref", "--short", "HEAD")
        assert git(run.project, "show", f"{branch}:answer.txt") == "42"
        assert git(run.project, "log", "-1", "--format=%s", branch) == "Write the answer down"
        assert any(CHANGE in path.name for path in (tree / "openspec/changes/archive").iterdir())
        git(run.project, "merge", "--quiet", branch)
        assert run.left() == {}


@each_cli
def test_an_agent_that_leaves_its_worktree_is_told_of(cast: Cast) -> None:
    brain = RoleBrain({})
    with rig(cast, brain) as run:
        first, *rest = FAIL_THEN_PASS["programmer_summary.md"]
        left = Answer(first.text, before=(*first.before, f"echo strayed > {run.project}/strayed.txt"))
        brain.script = {**FAIL_THEN_PASS, "programmer_summary.md": [left, *rest]}
        code, said = run.run(**POST, WORKSPACE="worktree")
        assert code == 0, said
        assert (run.project / "strayed.txt").read_text() == "strayed\n", "the user works there: it is not undone"
        (told,) = (event for event in events_in(tree_of(run)) if event["event"] == "guard_violation")
        assert told["role"] == "programmer"
        assert [change["path"] for change in told["outside"]] == ["strayed.txt in your checkout"]
