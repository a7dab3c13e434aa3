"""Worktrees are made on a branch of their own, beside whatever the user's checkout looks like."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quintet import git
from quintet.errors import GitError, RunError
from quintet.layout import worktrees_folder
from quintet.processes import Process
from quintet.workspace.creating import create
from quintet.workspace.worktrees import Stage, Worktree, trees_of, worktree_at, worktrees_of
from tests.workspace.repositories import TITLE, Killed, kill_after, settings, sh


def everything(wd: Path) -> list[str]:
    """What git knows of a checkout, and all files in it."""
    words = ("status --porcelain=v2 --branch --ignored", "stash list", "ls-files --stage --debug", "rev-parse HEAD")
    return [*(sh(wd, f"git {word}") for word in words), *sorted(str(path) for path in wd.glob("[!.]*"))]


def test_a_worktree_has_a_branch_of_its_own_at_head(checkout: Path) -> None:
    before = everything(checkout)
    made = create(settings(checkout), TITLE)
    assert (made.branch, made.stage, made.tree) == ("quintet/add-a-greeting", Stage.READY, made.top)
    assert made.top.is_relative_to(worktrees_folder())
    assert sh(made.tree, "git symbolic-ref HEAD") == "refs/heads/quintet/add-a-greeting"
    assert sh(made.tree, "git rev-parse HEAD") == sh(checkout, "git rev-parse main")
    assert everything(checkout) == before
    assert worktrees_of(checkout) == [made]
    assert trees_of(checkout) == [checkout, made.tree]
    assert worktree_at(made.tree / "below") == made


def test_a_second_one_gets_a_number(checkout: Path) -> None:
    sh(checkout, "git branch quintet/add-a-greeting")
    assert create(settings(checkout), TITLE).branch == "quintet/add-a-greeting-2"


@pytest.mark.parametrize(
    ("title", "branch"),
    [
        ("", "quintet/task"),
        ("日本語", "quintet/task"),
        ("Über 100 % grün!", "quintet/uber-100-grun"),
        ("../..", "quintet/task"),
    ],
)
def test_any_title_gives_a_branch(checkout: Path, title: str, branch: str) -> None:
    made = create(settings(checkout), title)
    assert made.branch == branch
    assert made.top.parent == worktrees_folder()


def test_the_base_and_the_name_are_settings(checkout: Path) -> None:
    first = sh(checkout, "git rev-parse HEAD")
    sh(checkout, "git commit --quiet --allow-empty --message Second")
    made = create(settings(checkout, workspace_base="main~1", workspace_branch="bot/{slug}/x"), TITLE)
    assert (made.branch, made.start) == ("bot/add-a-greeting/x", first)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"workspace_base": "nowhere"}, ["WORKSPACE_BASE", "nowhere"]),
        ({"workspace_branch": "a..b"}, ["WORKSPACE_BRANCH", "a..b"]),
        ({"workspace_branch": "-x"}, ["WORKSPACE_BRANCH"]),
        ({"workspace_base": "main~0", "workspace_branch": "main/x"}, ["main"]),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(checkout: Path, more: dict[str, str], words: list[str]) -> None:
    with pytest.raises(RunError) as caught:
        create(settings(checkout, **more), TITLE)
    assert [word for word in words if word not in str(caught.value)] == []
    assert len(str(caught.value).splitlines()) == 1
    assert sh(checkout, "git branch --list --all").split() == ["*", "main"]
    assert worktrees_of(checkout) == []


def test_a_branch_that_is_in_the_way_of_the_name_is_told(checkout: Path) -> None:
    sh(checkout, "git branch quintet")
    with pytest.raises(RunError, match=r"^WORKSPACE_BRANCH: .* your branch quintet .*{slug}") as caught:
        create(settings(checkout), TITLE)
    assert len(str(caught.value).splitlines()) == 1
    assert worktrees_of(checkout) == []


def test_a_folder_in_the_repository_is_refused(checkout: Path) -> None:
    with pytest.raises(RunError, match="outside"):
        create(settings(checkout, workspace_dir=str(checkout / "trees")), TITLE)


def test_another_folder_is_a_setting(checkout: Path, tmp_path: Path) -> None:
    assert create(settings(checkout, workspace_dir=str(tmp_path / "trees")), TITLE).top.parent == tmp_path / "trees"


@pytest.mark.parametrize(
    "line", ["git init --quiet .", "git init --quiet --bare .", "true"], ids=["no commit", "bare", "no repository"]
)
def test_a_folder_without_a_commit_is_refused(tmp_path: Path, line: str) -> None:
    wd = tmp_path / "empty"
    wd.mkdir()
    sh(wd, line)
    with pytest.raises(RunError) as caught:
        create(settings(wd), TITLE)
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_below_the_top_works_in_its_own_place(checkout: Path) -> None:
    wd = checkout / "apps" / "web"
    wd.mkdir(parents=True)
    (wd / "index.html").write_text("<p>")
    sh(checkout, "git add --all && git commit --quiet --message Web")
    made = create(settings(wd), TITLE)
    assert made.tree == made.top / "apps/web"
    assert (made.tree / "index.html").exists()


def test_a_folder_that_is_not_committed_is_made(checkout: Path) -> None:
    wd = checkout / "new"
    wd.mkdir()
    assert create(settings(wd), TITLE).tree.is_dir()


def test_a_worktree_of_a_worktree_belongs_to_the_same_repository(checkout: Path, tmp_path: Path) -> None:
    sh(checkout, "git clone --quiet --bare . ../bare.git && git -C ../bare.git worktree add --quiet ../mine")
    made = create(settings(tmp_path / "mine"), TITLE)
    assert sh(made.tree, "git rev-parse --path-format=absolute --git-common-dir") == str(tmp_path / "bare.git")


def test_a_shallow_clone_will_do(checkout: Path, tmp_path: Path) -> None:
    sh(checkout, "git commit --quiet --allow-empty --message Second")
    sh(tmp_path, f"git clone --quiet --depth 1 file://{checkout} shallow")
    assert create(settings(tmp_path / "shallow"), TITLE).stage is Stage.READY


def test_hooks_of_the_repository_do_not_run(checkout: Path) -> None:
    hook = checkout / ".git/hooks/post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran-here\nexit 3\n")
    hook.chmod(0o755)
    made = create(settings(checkout), TITLE)
    assert not (made.tree / "ran-here").exists()


def test_config_of_each_worktree_is_kept_apart(checkout: Path) -> None:
    sh(checkout, "git config extensions.worktreeConfig true && git config --worktree core.sparseCheckout false")
    assert create(settings(checkout), TITLE).stage is Stage.READY


def test_uncommitted_changes_go_along_as_a_commit(checkout: Path) -> None:
    (checkout / "README.md").write_text("Mine.\n")
    (checkout / "staged.txt").write_text("staged\n")
    sh(checkout, "git add staged.txt")
    (checkout / "untracked.txt").write_text("new\n")
    (checkout / ".tmp").mkdir()
    (checkout / ".tmp/state").write_text("ours")
    before = everything(checkout)
    made = create(settings(checkout, workspace_with_changes=True), TITLE)
    assert everything(checkout) == before
    assert made.start != made.base
    assert sh(made.tree, "git rev-parse HEAD~1") == made.base
    assert sh(made.tree, "git diff --name-only HEAD~1").split() == ["README.md", "staged.txt", "untracked.txt"]
    assert (made.tree / "README.md").read_text() == "Mine.\n"


@pytest.mark.parametrize("ignored", ["", ".tmp/\n.env\n"])
def test_what_is_copied_and_what_is_ignored_is_not_in_that_commit(checkout: Path, ignored: str) -> None:
    (checkout / ".gitignore").write_text(ignored)
    (checkout / "sub/.tmp").mkdir(parents=True)
    (checkout / ".tmp").mkdir()
    for path in (".tmp/state", "sub/.tmp/state", ".env", "sub/new"):
        (checkout / path).write_text("x")
    made = create(settings(checkout, workspace_with_changes=True, workspace_include=(".env",)), TITLE)
    assert sh(made.tree, "git diff --name-only HEAD~1").split() == [".gitignore", "sub/new"]
    assert made.included == (".env",)


def test_a_change_in_the_second_in_which_the_index_was_written_goes_along(checkout: Path) -> None:
    sh(checkout, "git config core.trustctime false; echo 1 > a; touch -d 2001-01-01 a; git add a; git commit -qm a")
    sh(checkout, "touch -d 2001-01-01 .git/index; echo 2 > a; touch -d 2001-01-01 a")
    made = create(settings(checkout, workspace_with_changes=True), TITLE)
    assert (made.tree / "a").read_text() == "2\n"


def test_without_changes_there_is_no_commit_for_them(checkout: Path) -> None:
    made = create(settings(checkout, workspace_with_changes=True), TITLE)
    assert made.start == made.base


def test_changes_do_not_go_along_to_another_base(checkout: Path) -> None:
    sh(checkout, "git commit --quiet --allow-empty --message Second")
    with pytest.raises(RunError, match="with-changes"):
        create(settings(checkout, workspace_with_changes=True, workspace_base="main~1"), TITLE)


def test_openspec_that_is_not_committed_is_told(checkout: Path) -> None:
    (checkout / "openspec").mkdir()
    (checkout / "openspec/project.md").write_text("x")
    with pytest.raises(RunError, match="openspec/ is not in the commit"):
        create(settings(checkout), TITLE)
    assert (create(settings(checkout, workspace_with_changes=True), TITLE).tree / "openspec/project.md").exists()


def test_untracked_files_are_copied_as_they_are(checkout: Path) -> None:
    (checkout / ".gitignore").write_text(".env\nsecrets/\n")
    (checkout / ".env").write_text("KEY=1")
    (checkout / ".env").chmod(0o640)
    (checkout / "secrets").mkdir()
    (checkout / "secrets/run.sh").write_text("#!/bin/sh\n")
    (checkout / "secrets/run.sh").chmod(0o755)
    (checkout / "local.link").symlink_to(".env")
    (checkout / "other.txt").write_text("not named")
    made = create(settings(checkout, workspace_include=(".env", "secrets/**", "*.link")), TITLE)
    assert made.included == (".env", "local.link", "secrets/run.sh")
    assert (made.tree / ".env").stat().st_mode & 0o777 == 0o640
    assert os.access(made.tree / "secrets/run.sh", os.X_OK)
    assert (made.tree / "local.link").readlink() == Path(".env")
    assert not (made.tree / "other.txt").exists()


def test_nothing_is_copied_through_a_link_of_the_repository(checkout: Path, tmp_path: Path) -> None:
    (checkout / "out").symlink_to(tmp_path)
    sh(checkout, "git add out && git commit --quiet --message Link && rm out && mkdir out && touch out/x")
    with pytest.raises(RunError):
        create(settings(checkout, workspace_include=("out/**",)), TITLE)
    assert not (tmp_path / "x").exists()
    assert worktrees_of(checkout) == []


@pytest.mark.parametrize("calls", range(6))
def test_a_kill_at_any_write_leaves_nothing_half_made(
    checkout: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(checkout)
    with monkeypatch.context() as patch:
        kill_after(calls, patch)
        try:
            made: Worktree | None = create(settings(checkout), TITLE)
        except Killed:
            made = None
    assert bool(made) is (calls == 5), "every write has its kill"
    for one in worktrees_of(checkout):
        one.model_copy(update={"pid": 0, "started": ""}).save()  # its process is gone
    assert everything(checkout) == before
    again = create(settings(checkout), "Something else")
    ready = [one for one in worktrees_of(checkout) if one.stage is Stage.READY]
    assert len(ready) == (2 if made else 1)
    branches = set(sh(checkout, "git for-each-ref --format='%(refname:short)' refs/heads").split())
    assert branches == {"main", again.branch} | ({made.branch} if made else set())
    assert len(sh(checkout, "git worktree list").splitlines()) == len(ready) + 1


def test_what_another_process_is_making_is_left_alone(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create(settings(checkout), TITLE)
    half = made.model_copy(update={"stage": Stage.CREATING, "pid": 12345, "started": "then"})
    half.save()
    monkeypatch.setattr(Process, "is_there", property(lambda self: self.pid == 12345))
    create(replace(settings(checkout), prompt="# Another\n"), "Another")
    assert half in worktrees_of(checkout)
    with pytest.raises(RunError, match="12345"):
        create(settings(checkout), TITLE)


def test_a_file_about_a_worktree_that_is_damaged_is_none(checkout: Path) -> None:
    made = create(settings(checkout), TITLE)
    made.file.write_text("{")
    assert worktrees_of(checkout) == []


def test_git_that_fails_is_one_line(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = git.run

    def fail(folder: Path, *words: str, **more: Any) -> Any:
        if words[:2] == ("worktree", "add"):
            raise GitError("git worktree in x failed: no space left on device")
        return real(folder, *words, **more)

    monkeypatch.setattr(git, "run", fail)
    with pytest.raises(RunError, match="no space left"):
        create(settings(checkout), TITLE)
    assert worktrees_of(checkout) == []
