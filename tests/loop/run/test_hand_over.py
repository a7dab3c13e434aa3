"""Handing a PASS over: a bare repository as the remote, and stand-ins for gh and glab that note their calls."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from quintet.roles import PROGRAMMER, TESTER
from tests.loop.run.test_after_pass import Shop, shop

__all__ = ["shop"]

PROGRAM = """#!/usr/bin/env python3
import json, os, sys
from pathlib import Path
here = Path(__file__).parent
known = here / "open"
with (here / "calls").open("a") as calls:
    calls.write(json.dumps([Path(sys.argv[0]).name, *sys.argv[1:], sys.stdin.read()]) + "\\n")
if sys.argv[2] == "list":
    print(json.dumps([{"url": "https://example.invalid/pull/7"}] if known.exists() else []))
    sys.exit(0)
if os.environ.get("GH_FAILS"):
    sys.exit("gh: not logged in")
known.touch()
print("https://example.invalid/pull/7")
"""


@pytest.fixture
def remote(shop: Shop, tmp_path: Path) -> Path:
    bare = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True)
    shop.git("remote", "add", "origin", str(bare))
    shop.git("checkout", "--quiet", "-b", "quintet/greeting")
    shop.write("new.txt")
    return bare


@pytest.fixture
def calls(remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert remote.is_dir()
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("gh", "glab"):
        (folder / name).write_text(PROGRAM)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder / "calls"


def noted(calls: Path) -> list[list[str]]:
    return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []


def branches(remote: Path) -> dict[str, str]:
    listed = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname:short) %(objectname)"],
        cwd=remote,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return dict(line.split() for line in listed.splitlines())


def test_the_commit_is_pushed_under_the_name_of_its_branch(shop: Shop, remote: Path) -> None:
    shop.settings = replace(shop.settings, post_git_commit=False, post_push="origin")
    shop.process()
    assert shop.warned == []
    assert branches(remote) == {"quintet/greeting": shop.git("rev-parse", "HEAD").strip()}
    assert shop.said[-1] == "pushed as quintet/greeting to origin"
    assert shop.count == 2, "a push needs a commit, whatever POST_GIT_COMMIT says"


def test_another_branch_can_be_named(shop: Shop, remote: Path) -> None:
    shop.settings = replace(shop.settings, post_push="origin night/greeting")
    shop.process()
    assert list(branches(remote)) == ["night/greeting"]


def test_a_push_is_never_forced_and_the_warning_has_the_command_to_repeat(shop: Shop, remote: Path) -> None:
    shop.git("push", "--quiet", "origin", "HEAD:refs/heads/quintet/greeting")
    shop.git("commit", "--quiet", "--amend", "--allow-empty", "-m", "rewritten")
    before = branches(remote)
    shop.settings = replace(shop.settings, post_push="origin", post_pr="draft")
    shop.process()
    assert branches(remote) == before
    commit = shop.git("rev-parse", "HEAD").strip()
    first, second = shop.warned
    assert first.startswith("not pushed: ")
    assert first.endswith(f"; to try again: git -C {shop.wd} push --quiet origin {commit}:refs/heads/quintet/greeting")
    assert second == "no pull request is made, because there is nothing pushed"


def test_a_remote_that_is_not_there_is_a_warning(shop: Shop) -> None:
    shop.settings = replace(shop.settings, post_push="nowhere")
    shop.process()
    assert len(shop.warned) == 1
    assert shop.warned[0].startswith("not pushed: ")


def test_a_detached_head_needs_a_name(shop: Shop, remote: Path) -> None:
    shop.git("checkout", "--quiet", "--detach")
    shop.settings = replace(shop.settings, post_push="origin")
    shop.process()
    assert branches(remote) == {}
    assert "POST_PUSH='origin my-branch'" in shop.warned[-1]


@pytest.mark.parametrize(("kind", "options"), [("draft", ["--draft"]), ("ready", [])])
def test_a_pull_request_is_opened_with_the_story_of_the_run(
    shop: Shop, remote: Path, calls: Path, kind: str, options: list[str]
) -> None:
    shop.settings = replace(shop.settings, post_git_commit=False, post_pr=kind)
    shop.process(
        start_commit=shop.git("rev-parse", "HEAD").strip(),
        outputs={PROGRAMMER.output: "It greets now.", TESTER.output: "RESULT: PASS\nEVIDENCE: ran it"},
        checked={"make greet": 0},
    )
    assert shop.warned == []
    listed, create = noted(calls)
    assert listed[:-1] == ["gh", "pr", "list", "--head", "quintet/greeting", "--state", "open", "--json", "url"]
    *arguments, body = create
    head = ["gh", "pr", "create", "--head", "quintet/greeting", "--title", "Add a greeting", "--body-file", "-"]
    assert arguments == [*head, *options]
    for part in ("Add a greeting\nMore.", "new.txt", "It greets now.", "`make greet` ended with exit code 0", "PASS"):
        assert part in body
    assert shop.said[-1] == "pull request opened: https://example.invalid/pull/7"
    assert list(branches(remote)) == ["quintet/greeting"]


def test_a_pull_request_that_is_open_already_stays(shop: Shop, calls: Path) -> None:
    (calls.parent / "open").touch()
    shop.settings = replace(shop.settings, post_pr="draft")
    shop.process()
    assert [call[2] for call in noted(calls)] == ["list"]
    assert shop.said[-1] == "the pull request of quintet/greeting is open already"


def test_a_remote_on_gitlab_gets_a_merge_request(shop: Shop, remote: Path, calls: Path) -> None:
    shop.git("remote", "add", "lab", "https://gitlab.example.invalid/a/b.git")
    shop.git("remote", "set-url", "--push", "lab", str(remote))
    shop.settings = replace(shop.settings, post_push="lab", post_pr="draft")
    shop.process()
    assert [call[:3] for call in noted(calls)] == [["glab", "mr", "list"], ["glab", "mr", "create"]]


def test_a_program_that_fails_or_is_missing_is_a_warning(
    shop: Shop, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_FAILS", "1")
    shop.settings = replace(shop.settings, post_pr="draft")
    shop.process()
    again = f"to try again: cd {shop.wd} && gh pr create --head quintet/greeting --fill"
    assert shop.warned == [f"no pull request: gh: not logged in; {again}"]
    (calls.parent / "gh").unlink()
    shop.warned.clear()
    shop.process()
    assert shop.warned == [f"no pull request: gh is not installed; {again}"]


@pytest.mark.parametrize("named", ["--force", "-f origin", "--mirror origin", "origin --delete main", "origin +main"])
def test_options_in_place_of_a_remote_or_a_branch_are_refused(shop: Shop, remote: Path, named: str) -> None:
    shop.git("push", "--quiet", "origin", "HEAD:refs/heads/main")
    before = branches(remote)
    shop.settings = replace(shop.settings, post_push=named)
    shop.process()
    assert branches(remote) == before
    assert shop.warned == [f"not pushed: POST_PUSH is {named!r}, which is no remote, and no remote and a branch"]


def test_a_password_in_the_address_of_a_remote_is_not_told(shop: Shop) -> None:
    shop.settings = replace(shop.settings, post_push="http://ann:s3cret@127.0.0.1:1/a.git main")
    shop.process()
    (warned,) = shop.warned
    assert "s3cret" not in warned
    assert "http://***@127.0.0.1:1/a.git" in warned


def test_nothing_is_pushed_where_the_work_could_not_be_committed(shop: Shop, remote: Path, calls: Path) -> None:
    head = shop.git("rev-parse", "HEAD")
    (shop.wd / ".git" / "MERGE_HEAD").write_text(head)
    shop.settings = replace(shop.settings, post_pr="draft")
    shop.process()
    assert branches(remote) == {}
    assert noted(calls) == []
    assert shop.warned[-1] == "no push and no pull request is made, because there is no commit"
