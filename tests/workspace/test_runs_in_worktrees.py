"""Runs of scripted agents in git worktrees: the user's checkout stays as it is, and the result is a branch."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.roles import PROGRAMMER, TESTER
from quintet.workspace.creating import create
from tests.stub.replies import PASS, TASK
from tests.watch.scripted import DEADLINE, Scripted
from tests.workspace.repositories import TITLE, settings
from tests.workspace.worktree_runs import branches, building_story, check_tasks_at_once, checkout, repository, trees


@pytest.fixture
def project() -> Iterator[Scripted]:
    with repository() as made:
        yield made


def test_a_run_works_on_a_branch_and_leaves_the_checkout_alone(project: Scripted) -> None:
    (project.wd / "mine.txt").write_text("not committed")
    (project.wd / ".env").write_text("KEY=1")
    before = checkout(project)
    code, output = project.call("run", "--plain", "--worktree", WORKSPACE_INCLUDE=".env", WORKSPACE_SETUP="echo > made")
    assert code == 0, output
    assert checkout(project) == before
    (branch,) = branches(project)
    (tree,) = trees(project)
    assert project.git("diff", "--name-only", "main", branch).split() == ["built.txt", "made"], ".env stays out of it"
    assert (tree / ".env").read_text() == "KEY=1"
    assert "it is without 1 uncommitted change in" in output, ".env is in it"
    run = max(tree.glob(".tmp/*/journal.jsonl")).parent.name
    assert (tree / ".tmp" / run / "000-setup.md").exists()
    for word in ("diff", "merge", "discard"):
        assert f"quintet {word} {run}" in output

    assert run in project.call("runs")[1]
    assert "PASS" in project.call("status", run)[1]
    code, patch = project.call("diff", run)
    assert code == 0, patch
    assert ("+done" in patch, "KEY=1" in patch) == (True, False), "what was copied into it is no change of the run"
    assert str(tree) in project.call("report", run)[1]
    assert f"| Branch | {branch}" in (tree / ".tmp" / run / "report.md").read_text(encoding="utf-8").replace("\\", "")
    code, output = project.call("discard")
    assert code == 1
    assert "would be lost" in output
    code, output = project.call("merge", "--squash")
    assert code == 0, output
    assert (project.wd / "built.txt").read_text() == "done\n"
    code, output = project.call("clean", "--dry-run")
    assert f"a worktree whose branch is merged: {tree}" in output.replace("\n", " ").replace("  ", " ")
    code, output = project.call("discard", run)
    assert code == 0, output
    assert (branches(project), tree.exists()) == ([], False)
    assert "no run and no terminals" in project.call("stop")[1]
    assert project.call("stop", "--all")[1].count("Ended") == 0, "its agents are not left in a folder that is gone"
    assert project.git("worktree", "list").count("\n") == 0
    code, output = project.call("runs")
    assert run in output, "its archive is kept"
    assert project.call("diff", run) == (0, patch), "and its diff"
    assert (project.wd / ".tmp" / run / "report.md").exists()


def test_several_tasks_at_once_are_several_runs(project: Scripted) -> None:
    check_tasks_at_once(project, 2)


def test_a_worktree_whose_setup_failed_is_used_again_with_what_the_user_put_right(project: Scripted) -> None:
    line = "touch made; echo no such package; test -e fix -a -e late && grep new .env || exit 7"
    needs = {"WORKSPACE_SETUP": line, "WORKSPACE_INCLUDE": ".env", "START_AGENT": PROGRAMMER.name}
    (project.wd / ".env").write_text("old")
    code, output = project.call("run", "--plain", "--worktree", **needs)
    assert code == 1, output
    assert "exit code 7" in output
    assert "no such package" in output
    (project.wd / ".env").write_text("new")
    (project.wd / "fix").write_text("")
    project.git("add", "fix")
    project.git("commit", "--quiet", "--message", "Fix")
    (project.wd / "late").write_text("")
    code, output = project.call("run", "--plain", "--worktree", "--with-changes", **needs)
    assert code == 0, output
    assert len(trees(project)) == 1
    assert project.git("diff", "--name-only", "main", branches(project)[0]).split() == ["built.txt", "late", "made"]


def test_an_unfinished_run_is_found_from_the_checkout_and_continues_beside_another(project: Scripted) -> None:
    project.script(building_story(think=60))
    first = project.start("run", "--plain", "--worktree")
    (tree,) = project.until(lambda: [path for path in trees(project) if list(path.glob(".tmp/*/prompts/*.md"))])
    assert project.call("logs", "analyst")[0] == 0
    code, output = project.call("run", "--plain", "--worktree")
    assert code == 1
    assert "another run is at work" in output
    code, output = project.call("stop")
    assert code == 0, output
    assert re.search(r"Resume it: .+ -m quintet run TASK.md\n", output), "from the checkout, not from the worktree"
    first.wait(timeout=DEADLINE)
    assert project.call("status")[0] == 0

    project.script(building_story())
    other = {"PROMPT": f"{TASK}\nAnother.\n", "START_AGENT": PROGRAMMER.name}
    code, output = project.call("run", "--plain", "--worktree", **other)
    assert code == 0, output
    assert len(trees(project)) == 2
    code, output = project.call("merge")
    assert code == 0, output

    code, output = project.call("run", "--plain")
    assert code == 0, output
    assert len(trees(project)) == 2
    (journal,) = tree.glob(".tmp/*/journal.jsonl")
    assert project.git("-C", str(tree), "symbolic-ref", "--short", "HEAD") in branches(project)
    code, output = project.call("discard", "--force", journal.parent.name)
    assert code == 0, output


def test_what_agents_change_in_the_checkout_is_told_and_stays(project: Scripted) -> None:
    roles = building_story()
    line = f"cd {project.wd} && echo more >> README.md && git branch elsewhere && git config some.key 1"
    roles[PROGRAMMER.name][0].insert(0, {"run": line})
    roles[TESTER.name] = [
        [{"run": f"{command}; ls"}, {"reply": PASS}] for command in ("git commit --allow-empty -m Mine", "true")
    ]
    project.script(roles)
    code, output = project.call("run", "--plain", "--worktree")
    assert code == 0, output
    assert (project.wd / "README.md").read_text() == "A project.\nmore\n"
    assert project.git("config", "some.key") == "1"
    (journal,) = trees(project)[0].glob(".tmp/*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    told, undone = (event for event in events if event["event"] == "guard_violation")
    assert [change["path"] for change in told["outside"]] == [
        "README.md in your checkout",
        "refs/heads/elsewhere",
        ".git/config",
    ]
    assert (told["role"], told["paths"], undone["role"], undone["undone"]) == (PROGRAMMER.name, [], TESTER.name, True)
    assert "Mine" not in project.git("log", "--format=%s", branches(project)[0])


def test_doctor_and_the_plan_say_where_a_run_would_work(project: Scripted) -> None:
    head = project.git("rev-parse", "--short=12", "HEAD")
    assert f"a worktree for each run, at HEAD ({head})" in project.call("doctor", WORKSPACE="worktree")[1]
    assert f"a new worktree at HEAD ({head})" in project.call("run", "--dry-run", "--worktree")[1]
    (project.wd / "openspec").mkdir()
    code, output = project.call("doctor", WORKSPACE="worktree")
    assert code == 1
    assert "failure  workspace" in output
    code, output = project.call("run", "--dry-run", "--worktree")
    assert (code, output.count("\n")) == (1, 1)
    assert not (project.root / "x/quintet/worktrees").exists()


@pytest.mark.parametrize("where", ["worktree", "tree"])
def test_what_another_run_commits_meanwhile_stays_on_its_branch(
    project: Scripted, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", project.env["XDG_STATE_HOME"])
    other = create(settings(project.wd), TITLE)
    top = Path(f"{other.top}-new")
    other.model_copy(update={"name": f"{other.name}-new", "branch": "quintet/new", "top": top}).save()
    commit = f"git -C {other.top} commit --quiet --allow-empty --message Later"
    line = f"{commit}; git worktree add -q -b quintet/new {top}"
    project.script({TESTER.name: [[{"run": f"{line}; ls"}, {"reply": PASS}]]})
    code, output = project.call("run", "--plain", WORKSPACE=where, START_AGENT=TESTER.name)
    assert code == 0, output
    assert project.git("log", "-1", "--format=%s", other.branch) == "Later"
    assert "quintet/new" in branches(project)
    assert "tester changed" not in output


def test_an_unfinished_run_in_the_checkout_goes_on_there_and_that_is_told(project: Scripted) -> None:
    project.script({PROGRAMMER.name: [[{"hang": True}]]})
    first = project.start("run", "--plain", START_AGENT=PROGRAMMER.name)
    project.until_there("*/prompts/*-programmer.md")
    first.kill()
    first.wait()
    project.call("stop", "--all")
    project.script(building_story())
    code, output = project.call("run", "--plain", "--worktree")
    assert code == 0, output
    assert "goes on there; --no-resume begins a new one in a worktree" in output
    assert (project.wd / "built.txt").exists()
