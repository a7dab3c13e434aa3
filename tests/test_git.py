"""Git runs in one place, the same everywhere."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from quintet import git
from quintet.errors import GitError
from tests.eventually import eventually
from tests.test_command import gone


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", tmp_path], check=True)
    return tmp_path


def test_a_failure_is_one_error_with_gits_own_words(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=r"git rev-parse in .* failed: .*not a git repository"):
        git.run(tmp_path, "rev-parse", "HEAD")
    assert git.run(tmp_path, "rev-parse", "HEAD", check=False).code == 128


def test_a_folder_or_a_git_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitError, match="cannot be run"):
        git.run(tmp_path / "none", "status")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="cannot be run"):
        git.run(tmp_path, "status")


def test_a_command_that_hangs_is_ended(repository: Path) -> None:
    with pytest.raises(GitError, match="did not end"):
        git.run(repository, "-c", "alias.hang=!sleep 600", "hang", seconds=0.2)


def commits_slowly(repository: Path) -> tuple[str, ...]:
    """The words of a commit that holds the lock of the index while its hook sleeps."""
    hook = repository / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch started\nexec sleep 600\n")
    hook.chmod(0o755)
    (repository / "a.txt").write_text("a\n")
    git.run(repository, "add", "a.txt")
    (repository / "a.txt").write_text("b\n")
    return ("-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--all", "--message", "m")


def test_a_command_that_is_interrupted_leaves_no_lock(repository: Path) -> None:
    class Interrupted(Exception):  # noqa: N818 - reads as what happened
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    def when_it_has_begun() -> None:
        eventually(lambda: (repository / "started").exists() and (repository / ".git/index.lock").exists())
        os.kill(os.getpid(), signal.SIGUSR1)

    words, before = commits_slowly(repository), signal.signal(signal.SIGUSR1, interrupt)
    waiting = threading.Thread(target=when_it_has_begun)
    waiting.start()
    try:
        with pytest.raises(Interrupted):
            git.run(repository, *words, hooks=True, seconds=60)
    finally:
        waiting.join()
        signal.signal(signal.SIGUSR1, before)
    assert not (repository / ".git/index.lock").exists()


def test_the_locks_of_a_killed_git_can_be_removed(repository: Path) -> None:
    identity = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    git.run(repository, *identity, "commit", "--allow-empty", "--message", "first")
    tree = repository / "tree"
    git.run(repository, "worktree", "add", "--quiet", "-b", "side/one", str(tree))
    own = Path(git.run(tree, "rev-parse", "--absolute-git-dir").text)
    locks = [own / "HEAD.lock", own / "index.lock", repository / ".git/refs/heads/side/one.lock"]
    for lock in locks:
        lock.touch()
    (repository / ".git/index.lock").touch()
    git.remove_locks(tree)
    git.run(tree, *identity, "commit", "--allow-empty", "--message", "second")
    assert (repository / ".git/index.lock").exists(), "that of another work tree"


def test_variables_that_name_another_repository_are_not_passed_on(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(other))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "kept")
    assert git.run(repository, "rev-parse", "--show-toplevel").text == str(repository)
    assert git.run(repository, "-c", "user.email=a@b", "var", "GIT_AUTHOR_IDENT").text.startswith("kept <")


def test_hooks_run_only_where_asked_for(repository: Path) -> None:
    hook = repository / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    words = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message", "x")
    assert git.run(repository, *words, hooks=True, check=False).code == 1
    assert git.run(repository, *words).code == 0


def test_bytes_go_in_and_come_out(repository: Path, tmp_path: Path) -> None:
    content = b"\0\r\n\xff"
    name = git.run(repository, "hash-object", "-w", "--stdin", feed=content).text
    assert git.run(repository, "cat-file", "blob", name).out == content
    with (tmp_path / "out").open("wb") as file:
        git.run(repository, "cat-file", "blob", name, to=file)
    assert (tmp_path / "out").read_bytes() == content
    (repository / "new\nline").write_bytes(b"")
    assert "new\nline" in git.run(repository, "ls-files", "-z", "--others").parts


def test_a_process_that_a_hook_leaves_behind_is_ended_and_not_waited_for(repository: Path) -> None:
    (repository / ".git/hooks").mkdir(exist_ok=True)
    hook = repository / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\nsleep 600 &\necho $! >pid\n")
    hook.chmod(0o755)
    words = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "--message", "x")
    git.run(repository, *words, hooks=True, seconds=500)
    gone(int((repository / "pid").read_text()))


def test_a_question_to_git_leaves_the_index_as_it_is(repository: Path) -> None:
    (repository / "same.txt").write_text("same")
    git.run(repository, "add", "same.txt")
    (repository / ".git/hooks").mkdir(exist_ok=True)
    hook = repository / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch '{repository}/hook-ran'\n")
    hook.chmod(0o755)
    os.utime(repository / "same.txt", (1, 1))  # git would note that only the time is another one
    before = (repository / ".git/index").read_bytes()
    git.run(repository, "diff", "--numstat")
    git.run(repository, "status", "--porcelain")
    assert (repository / ".git/index").read_bytes() == before
    assert not (repository / "hook-ran").exists()
