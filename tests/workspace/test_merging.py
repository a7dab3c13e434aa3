"""The branch of a worktree is merged where nothing is in the way; else one line says what is, and nothing changes."""

from pathlib import Path

import pytest

from quintet.errors import RunError
from quintet.workspace.creating import create
from quintet.workspace.merging import has_unmerged_commits, merge
from quintet.workspace.removing import remove
from quintet.workspace.repository import repository_of
from quintet.workspace.worktrees import Stage, Worktree, worktree_at, worktrees_of
from tests.workspace.repositories import TITLE, Killed, kill_after, settings, sh


@pytest.fixture
def made(checkout: Path) -> Worktree:
    """A worktree in which a run has committed one file."""
    found = create(settings(checkout), TITLE).model_copy(update={"pid": 0})
    found.save()
    (found.tree / "greeting.txt").write_text("Hello\n")
    sh(found.tree, "git add --all && git commit --quiet --message Greeting")
    return found


def refusal(made: Worktree, *, squash: bool = False) -> str:
    project = made.project
    before = sh(project, "git rev-parse HEAD && git status --porcelain && git ls-files --stage")
    with pytest.raises(RunError) as caught:
        merge(made, repository_of(project), "Add a greeting", squash=squash)
    assert sh(project, "git rev-parse HEAD && git status --porcelain && git ls-files --stage") == before
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_branch_is_merged(made: Worktree) -> None:
    commit = merge(made, repository_of(made.project), "Add a greeting", squash=False)
    assert commit == sh(made.project, "git rev-parse HEAD") == sh(made.tree, "git rev-parse HEAD")
    assert (made.project / "greeting.txt").read_text() == "Hello\n"
    assert not has_unmerged_commits(made, repository_of(made.project))


def test_a_branch_is_merged_beside_other_commits_and_files(made: Worktree) -> None:
    sh(made.project, "git commit --quiet --allow-empty --message Meanwhile")
    (made.project / "mine.txt").write_text("Mine\n")
    merge(made, repository_of(made.project), "Add a greeting", squash=False)
    assert len(sh(made.project, "git log -1 --format=%P").split()) == 2
    assert (made.project / "mine.txt").read_text() == "Mine\n"


def test_a_branch_is_merged_as_one_commit(made: Worktree) -> None:
    sh(made.tree, "echo more >> greeting.txt && git commit --quiet --all --message More")
    sh(made.project, "git commit --quiet --allow-empty --message Meanwhile")
    merge(made, repository_of(made.project), "Add a greeting\n\nRun 1", squash=True)
    assert sh(made.project, "git log --format=%s").split("\n") == ["Add a greeting", "Meanwhile", "Begin"]
    assert (made.project / "greeting.txt").read_text() == "Hello\nmore\n"
    again = worktree_at(made.tree)
    assert again
    assert not has_unmerged_commits(again, repository_of(made.project)), "squashed is merged"
    assert "merged already" in refusal(again)


def test_what_was_squashed_by_hand_is_merged(made: Worktree) -> None:
    sh(made.project, f"git merge --quiet --squash {made.branch} && git commit --quiet --message Mine")
    commit = sh(made.project, "git rev-parse HEAD")
    assert merge(made, repository_of(made.project), "Add a greeting", squash=True) == commit
    again = worktree_at(made.tree)
    assert again
    assert not has_unmerged_commits(again, repository_of(made.project))


@pytest.mark.parametrize("squash", [False, True])
def test_a_merge_that_the_user_took_back_is_none(made: Worktree, squash: bool) -> None:
    repository = repository_of(made.project)
    merge(made, repository, "Add a greeting", squash=squash)
    again = worktree_at(made.tree)
    assert again
    sh(made.project, "git switch --quiet --create other HEAD~1")
    assert not has_unmerged_commits(again, repository), "another branch has it"
    sh(made.project, "git switch --quiet main && git reset --quiet --hard HEAD~1")
    assert has_unmerged_commits(again, repository)
    merge(again, repository, "Add a greeting", squash=squash)
    assert (made.project / "greeting.txt").read_text() == "Hello\n"


def test_commits_beside_the_branch_are_unmerged_work(made: Worktree) -> None:
    repository = repository_of(made.project)
    merge(made, repository, "Add a greeting", squash=False)
    sh(made.tree, "git switch --quiet --detach && git commit --quiet --allow-empty --message Beside")
    again = worktree_at(made.tree)
    assert again
    assert has_unmerged_commits(again, repository)


def test_an_untracked_file_of_the_same_name_is_in_the_way(made: Worktree) -> None:
    (made.project / "greeting.txt").write_text("Mine\n")
    assert "greeting.txt" in refusal(made)
    assert "greeting.txt" in refusal(made, squash=True)
    assert (made.project / "greeting.txt").read_text() == "Mine\n"


def test_a_conflict_is_told_and_nothing_is_changed(made: Worktree) -> None:
    sh(made.tree, "echo theirs > README.md && git commit --quiet --all --message Theirs")
    sh(made.project, "echo mine > README.md && git commit --quiet --all --message Mine")
    assert "README.md" in refusal(made)
    assert "README.md" in refusal(made, squash=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("echo Mine > README.md", "README.md"),
        ("git switch --quiet --detach", "no branch"),
        ("echo x > {top}/late.txt", "late.txt"),
        ("git worktree remove --force {top} && git branch -D {branch}", "no branch"),
        (
            "git switch -qc other && echo a > README.md && git commit -qam A"
            " && git switch -q main && echo b > README.md && git commit -qam B && (git merge other || true)",
            "MERGE_HEAD",
        ),
    ],
    ids=["changes of the user", "detached", "not committed", "deleted", "a merge under way"],
)
def test_what_is_in_the_way_of_a_merge_is_told(made: Worktree, line: str, words: str) -> None:
    sh(made.project, line.format(top=made.top, branch=made.branch))
    assert words in refusal(made)


def test_a_branch_without_commits_is_told(checkout: Path) -> None:
    assert "nothing to merge" in refusal(create(settings(checkout), TITLE))


@pytest.mark.parametrize("squash", [False, True])
@pytest.mark.parametrize("calls", range(5))
def test_a_kill_at_any_write_of_a_merge_loses_nothing(
    made: Worktree, calls: int, squash: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_killed = False
    with monkeypatch.context() as patch:
        kill_after(calls, patch)
        try:
            merge(made, repository_of(made.project), "Add a greeting", squash=squash)
        except Killed:
            is_killed = True
    assert is_killed is (calls < (4 if squash else 3)), "every write has its kill"
    assert sh(made.project, "git status --porcelain") == "", "all or nothing"
    found = worktree_at(made.tree)
    assert found
    if sh(made.project, "git log -1 --format=%s") == "Begin":
        merge(found, repository_of(made.project), "Add a greeting", squash=squash)
    assert (made.project / "greeting.txt").read_text() == "Hello\n"


@pytest.mark.parametrize("calls", range(5))
def test_a_kill_at_any_write_of_a_removal_is_completed_by_the_next_one(
    made: Worktree, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_after(calls, patch)
        with pytest.raises(Killed):
            remove(made, repository_of(made.project), with_commits=True)
    left = worktree_at(made.top)
    if left and left.stage is Stage.READY:  # it had not begun
        remove(left, repository_of(made.project), with_commits=True)
    create(settings(made.project), "Another")
    assert [one.branch for one in worktrees_of(made.project)] == ["quintet/another"]
    assert not made.top.exists()
    assert sh(made.project, f"git branch --list {made.branch}") == ""


def test_a_worktree_whose_folder_is_gone_is_removed_all_the_same(made: Worktree) -> None:
    sh(made.project, f"rm -rf {made.top}")
    remove(made, repository_of(made.project), with_commits=True)
    assert worktrees_of(made.project) == []
    assert len(sh(made.project, "git worktree list").splitlines()) == 1


def test_commits_that_came_after_the_removal_began_stay(made: Worktree) -> None:
    remove(made, repository_of(made.project))
    assert sh(made.project, f"git log -1 --format=%s {made.branch}") == "Greeting"
