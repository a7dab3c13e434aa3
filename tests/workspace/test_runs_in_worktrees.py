"""Runs of scripted agents in git worktrees: the user's checkout stays as it is, and the result is a branch."""

from collections.abc import Iterator

import pytest

from quintet.roles import PROGRAMMER
from tests.stub.replies import PASS, PROGRAMMER_SUMMARY
from tests.watch.scripted import Scripted, scripted, story, turns


@pytest.fixture
def project() -> Iterator[Scripted]:
    with scripted(building_story()) as made:
        made.git("branch", "--move", "main")
        yield made


def building_story() -> dict[str, object]:
    """A run that passes at once, in which the programmer writes a file."""
    roles = story()
    roles[PROGRAMMER.name] = [[{"write": {"path": "built.txt", "text": "done\n"}}, {"reply": PROGRAMMER_SUMMARY}]]
    roles["tester"] = turns(PASS)
    return roles


def checkout(made: Scripted) -> dict[str, object]:
    """Everything of the user's checkout that a run must not change."""
    tracked = {path: path.read_bytes() for path in made.wd.rglob("*") if path.is_file() and ".git" not in path.parts}
    words = (("status", "--porcelain=v2", "--branch"), ("stash", "list"), ("rev-parse", "HEAD"), ("ls-files", "-s"))
    return {"files": tracked, "git": [made.git(*word) for word in words]}


def branches(made: Scripted) -> list[str]:
    return made.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def test_a_run_works_on_a_branch_and_leaves_the_checkout_alone(project: Scripted) -> None:
    (project.wd / "mine.txt").write_text("not committed")
    before = checkout(project)
    code, output = project.call("run", "--plain", "--worktree")
    assert code == 0, output
    assert checkout(project) == before
    (branch,) = (name for name in branches(project) if name != "main")
    assert project.git("diff", "--name-only", "main", branch) == "built.txt"
    assert "1 uncommitted change" in output
    assert f"git merge {branch}" in output
