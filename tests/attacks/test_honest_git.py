"""What honest agents, and their users, do with git in and beside the sandbox keeps working."""

import subprocess
from pathlib import Path

import pytest

from tests.attacks.scene import Attack, attack
from tests.eventually import eventually

LOOK = "git status && git log --oneline && git diff HEAD && git stash list"
COMMIT = "git add --all && git -c user.name=A -c user.email=a@localhost commit --quiet -m 'agent'"


def commit_all(made: Attack, message: str) -> None:
    made.run.git("add", "--all")
    made.run.git("commit", "--quiet", "--message", message)


@pytest.mark.attacks
def test_agents_look_and_commit_and_the_users_branch_gets_one_commit() -> None:
    with attack() as made:
        start = made.run.git("rev-parse", "HEAD")
        orders = {"programmer": [LOOK, "echo 42 > answer.txt", COMMIT], "tester": [LOOK, "git show HEAD:answer.txt"]}
        made.carry_out(orders, POST_GIT_COMMIT="1")
        assert made.code == 0, made.evidence
        assert made.events("guard_violation") == []
        assert made.run.git("log", "-1", "--format=%s %P") == f"Quintet: Add a greeting. {start}"
        assert made.run.git("show", "HEAD:answer.txt") == "42"


@pytest.mark.attacks
def test_a_filter_of_the_user_is_used_for_the_commit() -> None:
    """As git-lfs does: what is committed is another text than that in the work tree."""
    with attack() as made:
        (made.home / ".gitconfig").write_text(
            '[filter "big"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired = true\n'
        )
        (made.run.wd / ".gitattributes").write_text("*.big filter=big\n")
        (made.run.wd / "old.big").write_text("old\n")
        commit_all(made, "Use a filter")
        made.carry_out({"programmer": [LOOK, "echo new > new.big"]}, POST_GIT_COMMIT="1")
        assert made.code == 0, made.evidence
        assert made.run.git("show", "HEAD:new.big") == "NEW"
        assert made.run.git("status", "--porcelain") == ""


@pytest.mark.attacks
def test_hooks_run_in_a_run_without_a_sandbox() -> None:
    with attack() as made:
        made.run.git("config", "core.hooksPath", ".husky")
        hook = made.run.wd / ".husky" / "pre-commit"
        hook.parent.mkdir()
        hook.write_text(f"#!/bin/sh\ntouch {made.home}/hooked\n")
        hook.chmod(0o755)
        commit_all(made, "Add a hook")
        (made.home / "hooked").unlink()
        made.carry_out({"programmer": ["echo 42 > answer.txt"]}, POST_GIT_COMMIT="1", SANDBOX="off")
        assert made.code == 0, made.evidence
        assert (made.home / "hooked").exists()


def library_in(made: Attack) -> Path:
    library = made.run.root / "library"
    library.mkdir()
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "library"]):
        user = ["-c", "user.name=L", "-c", "user.email=l@localhost"]
        subprocess.run(["git", *user, *words], cwd=library, env=made.run.env, check=True)
    return library


@pytest.mark.attacks
def test_a_submodule_and_a_vendored_repository() -> None:
    with attack() as made:
        library = library_in(made)
        made.run.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "libs/one")
        commit_all(made, "Add a submodule")
        made.run.git("-c", "protocol.file.allow=always", "clone", "--quiet", str(library), "vendor/two")
        (made.run.wd / ".git/info").mkdir(exist_ok=True)
        (made.run.wd / ".git/info/exclude").write_text("vendor/\n")
        orders = [
            LOOK,
            f"cd libs/one && echo 1 > new && {COMMIT} && git log --oneline",
            "cd vendor/two && git status && git log --oneline",
            "echo 42 > answer.txt",
        ]
        made.carry_out({"programmer": orders}, POST_GIT_COMMIT="1")
        assert made.code == 0, made.evidence
        assert made.events("warned") == []
        assert made.run.git("show", "HEAD:answer.txt") == "42"
        assert made.run.git("ls-files", "--stage", "libs/one").startswith("160000")
        assert made.run.git("-C", "libs/one", "log", "--format=%s") == "library"
        assert made.run.git("-C", "libs/one", "status", "--porcelain") == "?? new"


@pytest.mark.attacks
@pytest.mark.parametrize("ending", ["merge", "discard"])
def test_a_worktree_is_merged_and_discarded(ending: str) -> None:
    with attack() as made:
        made.carry_out({"programmer": [LOOK, "echo 42 > answer.txt", COMMIT]}, "--worktree")
        assert made.code == 0, made.evidence
        code, said = made.run.call(ending, *(["--force"] if ending == "discard" else []))
        assert code == 0, said
        assert (made.run.wd / "answer.txt").exists() is (ending == "merge")
        made.run.git("fsck", "--strict")


@pytest.mark.attacks
def test_a_killed_run_resumes_with_what_agents_committed() -> None:
    with attack() as made:
        made.run.script({"analyst": [[{"run": f"echo 1 > openspec.md; {COMMIT}"}, {"hang": True}]]})
        shown = str(made.run.root / "scenario.json")
        settings = {"SANDBOX": "on", "SANDBOX_SHOW": shown}
        process = made.run.start("run", "--plain", **settings)
        made.run.until_there("*/prompts/001-analyst.md")
        eventually(lambda: next(made.run.root.glob("x/quintet/records/*/git/clone/COMMIT_EDITMSG"), None), "the commit")
        process.kill()
        process.wait()
        made.run.kill_tmux()
        made.carry_out({"programmer": ["git log --format=%s > log.txt; echo 42 > answer.txt"]}, POST_GIT_COMMIT="1")
        assert made.code == 0, made.evidence
        assert made.run.git("show", "HEAD:log.txt").startswith("agent")
        assert made.run.git("log", "--format=%s").splitlines()[1:] == ["Begin"]
