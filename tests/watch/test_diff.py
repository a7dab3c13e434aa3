"""The diff of a run, made by real git in real work trees."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quintet.loop import journal
from quintet.watch.report.write_report import write_report
from quintet.watch.runs import diff as module
from quintet.watch.runs.changes import changes_now
from quintet.watch.runs.diff import Diff, diff_now, diff_of, save_diff
from quintet.watch.runs.model import Run
from quintet.watch.runs.patches import parse_patch
from tests.watch.events import at, finished, started, write


class Tree:
    """A repository with the start commit of a run."""

    def __init__(self, wd: Path) -> None:
        self.wd = wd
        self.git("init", "--quiet")

    def git(self, *words: str, feed: bytes | None = None) -> bytes:
        identity = ["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]
        command = ["git", *identity, *words]
        return subprocess.run(command, cwd=self.wd, check=True, capture_output=True, input=feed).stdout

    def write(self, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            (self.wd / name).parent.mkdir(parents=True, exist_ok=True)
            (self.wd / name).write_bytes(content)

    def begin(self, files: dict[str, bytes]) -> Run:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Begin")
        return Run(id="run", start_commit=self.git("rev-parse", "HEAD").decode().strip(), status="PASS")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def summary(found: Diff) -> dict[str, tuple[str, int, int]]:
    return {file.title: (file.words, file.added, file.removed) for file in parse_patch(found.patch)}


def test_every_kind_of_change(tree: Tree) -> None:
    run = tree.begin(
        {
            "same": b"1\n",
            "changed": b"1\n2\n3",
            "gone": b"1\n",
            "moved": b"".join(b"%d\n" % number for number in range(20)),
            "mode": b"#!/bin/sh\n",
            "crlf": b"a\r\nb\r\n",
            "latin": b"caf\xe9\n",
            "link": b"",
        }
    )
    (tree.wd / "gone").unlink()
    (tree.wd / "moved").rename(tree.wd / "sub folder")
    (tree.wd / "mode").chmod(0o755)
    (tree.wd / "link").unlink()
    (tree.wd / "link").symlink_to("same")
    tree.write({"changed": b"1\n2\n4", "crlf": b"a\nb\r\n", "latin": b"th\xe9\n", "picture": b"\0\1"})
    tree.write({"new\n\"line'\t\\ ü": b"x", "-rf": b"y\n", "empty": b"", ".tmp/run/mine": b"not a change\n"})
    os.utime(tree.wd / "same", (1, 1))
    tree.git("add", "picture")
    found = diff_now(tree.wd, run)
    assert found.note == ""
    assert summary(found) == {
        "changed": ("", 1, 1),
        "gone": ("deleted", 0, 1),
        "moved → sub folder": ("renamed", 0, 0),
        "mode": ("mode 100644 → 100755", 0, 0),
        "crlf": ("", 1, 1),
        "latin": ("", 1, 1),
        "link": ("new, symbolic link", 1, 0),
        "picture": ("new, not shown: binary or very large", 0, 0),
        "new\n\"line'\t\\ ü": ("new", 1, 0),
        "-rf": ("new", 1, 0),
        "empty": ("new", 0, 0),
    }
    assert b"-caf\xe9\n+th\xe9\n" in found.patch, "bytes as they are"


def test_files_of_the_list_of_changes_and_no_others(tree: Tree) -> None:
    run = tree.begin({"a": b"1\n", "b": b"in b\n", "c": b"in c\n"})
    tree.write({"a": b"2\n", "d/e": b"1\n", "ignored": b"1\n", ".gitignore": b"ignored\n", "staged": b"1\n"})
    (tree.wd / "b").unlink()
    tree.git("add", "staged")
    tree.git("rm", "--quiet", "c")
    listed = {(file.path, file.kind, file.added, file.removed) for file in changes_now(tree.wd, run).files}
    files = parse_patch(diff_now(tree.wd, run).patch)
    assert {(file.path, file.kind, file.added, file.removed) for file in files} == listed
    tree.git("add", "--all")
    tree.git("commit", "--quiet", "--message", "Work")
    assert parse_patch(diff_now(tree.wd, run).patch) == files, "commits of the run are part of it"


def test_a_look_leaves_index_objects_and_work_tree_as_they_are(tree: Tree) -> None:
    run = tree.begin({"a": b"1\n"})
    tree.git("update-index", "--split-index")
    tree.write({"a": b"2\n", "new": b"1\n"})
    os.utime(tree.wd / "a", (1, 1))

    def everything() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in sorted(tree.wd.rglob("*")) if path.is_file()}

    before = everything()
    assert summary(diff_now(tree.wd, run)) == {"a": ("", 1, 1), "new": ("new", 1, 0)}
    assert everything() == before


def test_a_change_in_the_second_in_which_the_index_was_written(tree: Tree) -> None:
    long_ago = (1_000_000_000, 1_000_000_000)
    tree.git("config", "core.trustctime", "false")
    tree.write({"a": b"1\n"})
    os.utime(tree.wd / "a", long_ago)
    run = tree.begin({})
    os.utime(tree.wd / ".git/index", long_ago)
    tree.write({"a": b"2\n"})
    os.utime(tree.wd / "a", long_ago)
    assert summary(diff_now(tree.wd, run)) == {"a": ("", 1, 1)}


def test_no_program_that_a_repository_names_is_run(tree: Tree) -> None:
    run = tree.begin({".gitattributes": b"* diff=evil filter=evil\n", "a": b"1\n"})
    touch = f"touch '{tree.wd}/.git/ran'; cat"
    for name in ("diff.evil.textconv", "diff.evil.command", "filter.evil.smudge", "diff.external", "core.pager"):
        tree.git("config", name, touch)
    tree.git("config", "core.fsmonitor", touch)
    hook = tree.wd / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{touch}\n")
    hook.chmod(0o755)
    tree.write({"a": b"2\n", "b": b"2\n"})
    assert summary(diff_now(tree.wd, run)) == {"a": ("", 1, 1), "b": ("new", 1, 0)}
    assert not (tree.wd / ".git/ran").exists()


def test_the_users_settings_for_diffs_do_not_change_the_patch(tree: Tree) -> None:
    run = tree.begin({"d/a b": b"1\n\n3\n"})
    tree.write({"d/a b": b"1\n\n4\n"})
    plain = diff_now(tree.wd, run).patch
    for name, value in {
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.relative": "true",
        "diff.suppressBlankEmpty": "true",
        "diff.context": "0",
        "color.ui": "always",
        "color.diff": "always",
        "core.quotePath": "true",
    }.items():
        tree.git("config", name, value)
    assert diff_now(tree.wd, run).patch == plain
    assert summary(diff_now(tree.wd / "d", run)) == {"d/a b": ("", 1, 1)}


def test_a_project_below_the_root_of_its_repository(tree: Tree) -> None:
    run = tree.begin({"outside": b"1\n", "project/a": b"1\n"})
    tree.write(
        {"outside": b"2\n", "other": b"1\n", "project/a": b"2\n", "project/new": b"1\n", "project/.tmp/r": b"1\n"}
    )
    found = diff_now(tree.wd / "project", run)
    assert summary(found) == {"project/a": ("", 1, 1), "project/new": ("new", 1, 0)}


def test_a_submodule_and_a_repository_within(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Tree(tmp_path_factory.mktemp("other"))
    other.begin({"a": b"1\n"})
    tree.git("submodule", "--quiet", "add", str(other.wd), "module")
    run = tree.begin({"b": b"1\n"})
    (tree.wd / "module/a").write_text("2\n")
    (tree.wd / "nested").mkdir()
    Tree(tree.wd / "nested").begin({"x": b"1\n"})
    found = diff_now(tree.wd, run)
    assert summary(found) == {"module": ("", 1, 1)}
    assert found.note == "Left out (a repository of its own): nested/."


def test_a_very_long_diff_is_bounded_and_names_what_was_left_out(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tree.begin({"b": b"1\n", "d": b"1\n"})
    tree.write({"a": b"x" * 1500, "b": b"y" * 2500, "c": b"z" * 3000, "d": b"2\n", "e": b"big\n" * 300_000})
    monkeypatch.setattr(module, "MOST_BYTES", 3000)
    found = diff_now(tree.wd, run)
    large = ("new, not shown: binary or very large", 0, 0)
    assert summary(found) == {"a": ("new", 1, 0), "d": ("", 1, 1), "e": large}, "what fits is there"
    assert len(found.patch) <= 3000
    assert found.note == "Left out (the diff would be too large): c, b."
    monkeypatch.setattr(module, "_MOST_READ", 2000)
    found = diff_now(tree.wd, run)
    assert summary(found) == {"a": ("new", 1, 0)}
    assert found.note.endswith(": c, b and all files after it.")


def test_where_nothing_can_be_compared(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> None:
    run = tree.begin({})
    assert diff_now(tree.wd, run) == Diff()
    assert "not in a git repository" in diff_now(tree.wd, Run()).note
    assert "not in this repository" in diff_now(tmp_path_factory.mktemp("none"), run).note
    assert "not in this repository" in diff_now(tree.wd / "gone", run).note
    assert "not in this repository" in diff_now(tree.wd, Run(start_commit="--output=/tmp/x")).note
    (tree.wd / ".git/index").write_bytes(b"broken")
    assert "What has changed is not known: git" in diff_now(tree.wd, run).note


def test_a_diff_is_kept_at_the_end_and_made_anew_for_a_run_that_goes_on(tree: Tree) -> None:
    run = tree.begin({"a": b"1\n"})
    folder = tree.wd / ".tmp" / "run"
    tree.write({"a": b"2\n\xff\n"})
    found = Diff(diff_now(tree.wd, run).patch, "Left out: b\x1b.")
    save_diff(folder, found)
    assert (folder / "changes.patch").stat().st_mode & 0o777 == 0o600
    tree.write({"a": b"3\n"})
    assert diff_of(folder, run) == Diff(found.patch, "Left out: b�.")
    going_on = Run(id="run", start_commit=run.start_commit)
    assert diff_of(folder, going_on) == diff_now(tree.wd, run)
    (folder / "changes.patch").write_bytes(b"")
    assert diff_of(folder, run) == Diff()
    (folder / "changes.patch").unlink()
    assert diff_of(folder, run) == diff_now(tree.wd, run)


def test_the_report_at_the_end_keeps_the_diff_and_says_how_to_see_it(tree: Tree) -> None:
    start = tree.begin({}).start_commit
    first = journal.RunStarted(run_id="r", wd=str(tree.wd), start_agent="analyst", start_commit=start)
    folder = write(tree.wd / ".tmp" / "r", [at(0, first), *started()[1:], finished(1, "PASS")])
    tree.write({"new": b"at the end\n"})
    text, page = (path.read_text(encoding="utf-8") for path in write_report(folder, at_end=True))
    assert "`quintet diff r` shows the diff." in text
    assert "+at the end" in page
    tree.write({"new": b"later\n"})
    assert write_report(folder)[1].read_text(encoding="utf-8") == page


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and name.lower() not in (".git", ".tmp", ".gitignore", ".gitattributes")
    and len(name.encode()) < 100 and "git~" not in name.lower()
)  # fmt: skip
LINES = st.lists(
    st.sampled_from([b"a", b"b", b"", b"-- a/x", b"++ b/x", b"diff --git a/a b/a", b"\xff\x1b[31m", b"c\r"]), max_size=8
)
CONTENT = st.one_of(
    st.none(), st.tuples(LINES, st.booleans()).map(lambda given: b"\n".join(given[0]) + b"\n" * given[1])
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(NAMES, st.tuples(CONTENT, CONTENT), max_size=5))
def test_the_patch_of_any_tree_applies_and_has_the_counts_of_git(
    files: dict[str, tuple[bytes | None, bytes | None]],
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="quintet-test-"))
    try:
        _check_tree(folder, files)
    finally:
        shutil.rmtree(folder)


def _check_tree(folder: Path, files: dict[str, tuple[bytes | None, bytes | None]]) -> None:
    tree = Tree(folder)
    run = tree.begin({name: old for name, (old, _) in files.items() if old is not None})
    for name, (old, new) in files.items():
        if old is not None and new is None:
            (folder / name).unlink()
    tree.write({name: new for name, (_, new) in files.items() if new is not None})
    found = diff_now(folder, run)
    assert found.note == ""

    # git's own counts, from an index of its own
    tree.git("add", "--all")
    counts = tree.git("diff", "--cached", "--numstat", "--find-renames", run.start_commit).decode().split("\n")[:-1]
    expected = sorted(tuple(map(int, line.split("\t")[:2])) for line in counts)
    assert sorted((file.added, file.removed) for file in parse_patch(found.patch)) == expected

    wanted = tree.git("write-tree")
    tree.git("read-tree", run.start_commit)
    if found.patch:
        tree.git("apply", "--cached", "--whitespace=nowarn", feed=found.patch)
    assert tree.git("write-tree") == wanted
