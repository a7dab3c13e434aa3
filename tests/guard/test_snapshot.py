"""Snapshots in all kinds of repositories, and what they see of a change."""

import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quintet import git as leaf
from quintet.errors import NotGuarded, TooLarge
from quintet.guard import Area, Change, Store, compare, finish, load, look, save, take
from quintet.guard.store import Deadline, Entry
from tests.guard.projects import EVERYTHING, NOTHING, OPENSPEC, Project, git, make, state


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make(tmp_path)


def everything_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files with times and bytes, those of git too: what a snapshot must leave untouched."""
    paths = [
        path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and "objects" not in path.parts
    ]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


def test_nothing_of_a_snapshot_is_visible(project: Project) -> None:
    hook = project.write(".git/hooks/post-index-change", f"#!/bin/sh\ntouch {project.tree}/hook-ran\n")
    hook.chmod(0o755)
    os.utime(project.tree / "run.sh")  # the index is out of date: git would like to refresh it
    was, seen = everything_in(project.tree), state(project)
    project.take()
    project.changes()
    project.take()
    assert everything_in(project.tree) == was
    assert state(project) == seen


def test_unchanged_files_are_not_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.guard.scanning._RACY_NS", -(10**12))  # as if the files were older
    project.take()
    read = observed(project.store, monkeypatch)
    project.take()
    project.changes()
    assert read == []
    project.write("run.sh", "x")
    assert len(project.changes()) == 1
    assert read == [str(project.tree / "run.sh")]


def observed(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    read: list[str] = []
    real = store.observe

    def observe(path: str, deadline: Deadline) -> Entry | None:
        read.append(path)
        return real(path, deadline)

    monkeypatch.setattr(store, "observe", observe)
    return read


def test_an_edit_with_the_same_size_and_times_is_seen(project: Project) -> None:
    path = project.tree / "run.sh"
    project.take().time += 10_000_000_000  # as if the files were older
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text("#!/bin/ls\n")
    os.utime(path, ns=times)
    assert project.kinds() == {"file changed run.sh"}


def test_a_file_as_young_as_its_snapshot_is_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.take()
    read = observed(project.store, monkeypatch)
    project.changes()
    assert str(project.tree / "run.sh") in read


# -- what a comparison has seen, as the next snapshot


def test_what_was_seen_is_the_snapshot_that_would_be_taken(project: Project) -> None:
    before = project.take()
    project.write("src/main.c", "mended\n")
    project.write("new/deep/file.c", "new\n")
    (project.tree / "run.sh").unlink()
    (project.tree / "empty/in/it").mkdir(parents=True)
    seen = look(before, project.store)
    assert seen.complete
    save(seen, project.store, "next")
    kept, taken = load(project.store, "next"), project.take()
    assert kept == seen
    assert kept == replace(taken, time=seen.time, table=seen.table)


NEEDS_MORE: dict[str, Callable[[Project], object]] = {
    "an ignore file": lambda project: project.write(".gitignore", "*.log\n"),
    "a new ignore file": lambda project: project.write("src/.gitignore", "*.log\n"),
    "rules of the repository": lambda project: project.write(".git/info/exclude", "*.log\n"),
    "the index": lambda project: project.git("add", "notes"),
    "a commit": lambda project: project.git("commit", "--quiet", "--all", "--message", "more"),
    "a branch": lambda project: project.git("branch", "other"),
    "HEAD": lambda project: project.git("checkout", "--quiet", "--detach"),
    "a ref that is not guarded": lambda project: project.git("update-ref", "refs/remotes/x/main", "HEAD"),
    "the config": lambda project: project.git("config", "core.ignoreCase", "true"),
    "a nested repository": lambda project: git(project.tree, "init", "--quiet", "nested"),
}


@pytest.mark.parametrize("what", NEEDS_MORE)
def test_after_more_than_files_a_new_snapshot_is_needed(project: Project, what: str) -> None:
    before = project.take()
    NEEDS_MORE[what](project)
    assert not look(before, project.store).complete


def test_a_file_that_was_too_much_to_read_needs_a_new_snapshot(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = project.take()
    monkeypatch.setattr("quintet.guard.scanning._ROOM", 10)
    project.write("large", "more than ten bytes")
    assert not look(before, project.store).complete


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that are run from now on."""
    real, words = leaf.run, list[str]()

    def run(folder: Path, *arguments: str, **options: Any) -> leaf.GitResult:
        words.append(next(word for word in arguments if word.isalpha() or word in ("ls-files", "for-each-ref")))
        return real(folder, *arguments, **options)

    monkeypatch.setattr("quintet.git.run", run)
    return words


def test_a_quiet_turn_asks_git_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = project.take()
    words = asked(monkeypatch)
    seen = look(before, project.store)
    save(seen, project.store, "next")
    assert words == ["ls-files"]


def test_protected_files_with_wildcards_are_listed_by_git(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.protect = ("build/*.o", "notes", "build/none", "./run.sh")
    before = project.take()
    assert "build/out.o" in before.files
    assert "notes/untracked.txt" in before.files
    words = asked(monkeypatch)
    look(before, project.store)
    assert words == ["ls-files", "ls-files"]


def test_what_is_behind_a_protected_link_is_not_walked(project: Project, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_text("x")
    project.protect = ("linked/**",)
    (project.tree / "linked").symlink_to(tmp_path / "outside")
    before = project.take()
    assert [name for name in before.files if name.startswith("linked")] == ["linked"]


@pytest.mark.parametrize("where", ["in files", "packed", "behind a link"])
def test_a_ref_is_seen_wherever_git_keeps_it(project: Project, where: str, tmp_path: Path) -> None:
    project.git("commit", "--quiet", "--allow-empty", "--message", "two")
    if where == "packed":
        project.git("pack-refs", "--all")
    if where == "behind a link":
        (project.tree / ".git/refs/heads").rename(tmp_path / "heads")
        (project.tree / ".git/refs/heads").symlink_to(tmp_path / "heads")
    project.take()
    assert project.kinds() == set()
    project.git("update-ref", "refs/heads/side", "main")
    assert project.kinds() == {"ref changed refs/heads/side"}


def test_a_snapshot_that_takes_too_long(project: Project) -> None:
    with pytest.raises(TooLarge, match="more than 0 s"):
        project.take(seconds=0)


def test_no_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(NotGuarded, match="not a git repository"):
        take(tmp_path / "plain", Store(tmp_path / "store"), "turn")


def test_a_repository_of_somebody_else(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr(leaf, "_KEPT", (*leaf._KEPT, "GIT_TEST_"))
    with pytest.raises(NotGuarded, match=r"dubious ownership|safe\.directory"):
        project.take()


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    project = Project(tmp_path / "tree", Store(tmp_path / "store"), tmp_path / "undone.patch")
    project.tree.mkdir()
    project.git("init", "--quiet", "--initial-branch=main")
    project.write("a.txt", "mine\n")
    project.take()
    was = state(project)
    project.write("a.txt", "theirs\n")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "first")
    assert project.split(NOTHING).serious
    assert project.undo().failed == {}
    assert state(project) == was


def test_a_folder_in_a_larger_repository(project: Project) -> None:
    project.write("src/own.txt", "untracked\n")
    inner = Project(project.tree / "src", project.store, project.patch)
    project.write("src/.gitignore", "/ignored\n")
    inner.take()
    was = state(project)
    inner.write("main.c", "edited\n")
    inner.write("ignored", "by the folder's own rule\n")
    inner.write("other.o", "by the rule of the top\n")
    project.write("run.sh", "elsewhere\n")
    project.write("new.txt", "elsewhere\n")
    assert inner.kinds() == {"file changed main.c", "elsewhere changed run.sh", "elsewhere created new.txt"}
    assert inner.undo().failed == {}
    left = {name for name, value in state(project).items() if was.get(name) != value}
    assert left == {"run.sh", "new.txt", "src/ignored", "src/other.o", "status --porcelain --ignored"}


def test_a_second_work_tree(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    project.git("worktree", "add", "--quiet", str(other), "side")
    second = Project(other, project.store, project.patch)
    second.take()
    was = (state(second), state(project))
    second.write("run.sh", "x")
    second.git("commit", "--quiet", "--all", "--message", "agent")
    (other / ".git").unlink()
    assert second.undo().failed == {}
    assert (state(second), state(project)) == was


def test_a_deleted_second_work_tree_of_git(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    project.git("worktree", "add", "--quiet", str(other), "side")
    second = Project(other, project.store, project.patch)
    second.take()
    was = state(second)
    project.git("worktree", "remove", "--force", str(other))
    other.mkdir()
    assert second.split(NOTHING).serious
    assert second.undo().failed == {}
    assert state(second) == was


def test_in_the_middle_of_a_merge(project: Project) -> None:
    project.git("checkout", "--quiet", "--force", "side")
    project.write("run.sh", "side\n")
    project.git("commit", "--quiet", "--all", "--message", "side")
    project.git("checkout", "--quiet", "main")
    project.write("run.sh", "main\n")
    project.git("commit", "--quiet", "--message", "main", "run.sh")
    leaf.run(project.tree, "-c", "user.name=u", "-c", "user.email=u@x", "merge", "side", check=False)
    assert "UU run.sh" in project.git("status", "--porcelain")
    project.take()
    was = state(project)
    project.git("merge", "--abort")
    assert not (project.tree / ".git/MERGE_HEAD").exists()
    assert project.undo().failed == {}
    assert state(project) == was
    assert (project.tree / ".git/MERGE_HEAD").exists()


def test_an_index_lock_of_the_user_is_not_broken(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.guard.restore._LOCK_SECONDS", 0.0)
    project.write(".git/index.lock", "")
    project.take()
    (project.tree / ".git/index.lock").unlink()
    project.git("add", "src/main.c")
    project.write(".git/index.lock", "held")
    project.write("run.sh", "x")
    done = project.undo()
    assert list(done.failed) == ["index"]
    assert (project.tree / ".git/index.lock").read_text() == "held"
    assert (project.tree / "run.sh").read_text() == "#!/bin/sh\n"


CONVERSIONS: dict[str, Callable[[Project], object]] = {
    "autocrlf": lambda p: p.git("config", "core.autocrlf", "true"),
    "eol": lambda p: p.write(".gitattributes", "* text eol=crlf\n"),
    "filter": lambda p: [
        p.git("config", "filter.f.clean", f"touch {p.tree}/filter-ran; tr a-z A-Z"),
        p.git("config", "filter.f.smudge", f"touch {p.tree}/filter-ran; tr A-Z a-z"),
        p.git("config", "filter.f.required", "true"),
        p.write(".gitattributes", "* filter=f\n"),
    ],
    "working tree encoding": lambda p: p.write(".gitattributes", "*.c working-tree-encoding=UTF-16\n"),
    "no file mode": lambda p: p.git("config", "core.fileMode", "false"),
    "no symbolic links": lambda p: p.git("config", "core.symlinks", "false"),
    "sparse checkout": lambda p: p.git("sparse-checkout", "set", "src"),
    "skip-worktree": lambda p: p.git("update-index", "--skip-worktree", "src/deep/er/util.c"),
    "split index": lambda p: p.git("update-index", "--split-index"),
    "untracked cache": lambda p: p.git("update-index", "--force-untracked-cache"),
    "a file system monitor": lambda p: p.git("config", "core.fsmonitor", f"touch {p.tree}/filter-ran; false"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_bytes_are_the_truth_whatever_git_makes_of_them(tmp_path: Path, name: str) -> None:
    project = make(tmp_path)
    project.git("reset", "--hard", "--quiet")
    CONVERSIONS[name](project)
    project.write("src/crlf.c", b"one\r\ntwo\nthree\r\n")
    project.write("src/deep/er/util.c", b"mixed\r\nlines\n")
    (project.tree / "run.sh").chmod(0o700) if (project.tree / "run.sh").exists() else None
    (project.tree / "filter-ran").unlink(missing_ok=True)
    project.take()
    paths = [path for path in project.tree.rglob("*") if path.is_file() and not {".git", "build"} & {*path.parts}]
    was = {path: (path.stat().st_mode, path.read_bytes()) for path in paths}
    index = (project.tree / ".git/index").read_bytes()
    for path in paths:
        path.write_bytes(b"agent\r\n")
        path.chmod(0o666)
    project.write(".git/index", b"") if name == "split index" else project.git("update-index", "--add", "src/crlf.c")
    assert project.undo().failed == {}
    assert {path: (path.stat().st_mode, path.read_bytes()) for path in was} == was
    assert (project.tree / ".git/index").read_bytes() == index
    assert not (project.tree / "filter-ran").exists()


def test_protected_files_count_even_where_they_are_ignored(project: Project) -> None:
    project.protect = ("quintet.json", ".quintet/**", "build/*.json")
    project.write(".gitignore", "*.o\n/build/\n/quintet.json\n.quintet\n")
    for name in ("quintet.json", ".quintet/prompts/a.md", "build/check.json"):
        project.write(name, "mine")
    project.take()
    for name in ("quintet.json", ".quintet/prompts/a.md", "build/check.json", ".quintet/new.md", "build/other.txt"):
        project.write(name, "theirs")
    assert project.kinds() == {
        "file changed quintet.json",
        "file changed .quintet/prompts/a.md",
        "file changed build/check.json",
        "file created .quintet/new.md",
    }


def test_a_programmers_commit_stays_and_protected_files_come_back_in_tree_and_index(project: Project) -> None:
    project.write("quintet.json", "mine")
    project.git("add", "quintet.json")
    project.git("commit", "--quiet", "--message", "settings", "quintet.json")
    project.take()
    project.write("quintet.json", "theirs")
    project.write("src/main.c", "work")
    project.git("commit", "--quiet", "--all", "--message", "work")
    made = project.git("rev-parse", "HEAD")
    split = project.split(EVERYTHING)
    assert {(change.area.value, change.name) for change in split.forbidden} == {
        ("file", "quintet.json"),
        ("index", "quintet.json"),
    }
    assert project.undo(EVERYTHING).failed == {}
    assert project.git("rev-parse", "HEAD") == made
    assert (project.tree / "quintet.json").read_text() == "mine"
    assert project.git("show", ":quintet.json") == "mine"
    assert (project.tree / "src/main.c").read_text() == "work"
    assert project.git("status", "--porcelain", "quintet.json") == "M  quintet.json"


def test_an_analyst_may_stage_its_own_files_only(project: Project) -> None:
    project.take()
    project.write("openspec/spec.md", "spec")
    project.write("src/main.c", "meddled")
    project.git("add", "openspec", "src/main.c")
    assert project.undo(OPENSPEC).failed == {}
    assert (project.tree / "src/main.c").read_text() == "dirty\n"
    assert project.git("show", ":src/main.c") == "int main;"
    assert project.git("show", ":openspec/spec.md") == "spec"


def test_submodules_and_nested_repositories_are_told_by_their_commit(project: Project, tmp_path: Path) -> None:
    library = make(tmp_path / "library")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.tree), "lib")
    git(tmp_path, "clone", "--quiet", str(library.tree), str(project.tree / "nested"))
    project.take()
    for name in ("lib", "nested"):
        git(project.tree / name, "commit", "--quiet", "--allow-empty", "--message", "x")
        (project.tree / name / "run.sh").write_text("inside")
    split = project.split(NOTHING)
    assert {change.name for change in split.told} == {"lib/", "nested/"}
    assert split.forbidden == ()


def test_what_is_not_committed_in_a_nested_repository_is_told_too(project: Project) -> None:
    nested = make(project.tree / "lib").tree
    project.take()
    assert project.kinds() == set()
    (nested / "build").mkdir(exist_ok=True)
    (nested / "build/out").write_text("ignored there")
    assert project.kinds() == set()
    (nested / "run.sh").write_text("edited")
    assert project.kinds() == {"nested changed lib/project/"}
    assert project.split(NOTHING).forbidden == ()


def test_files_in_a_new_nested_repository_are_seen(project: Project) -> None:
    project.git("init", "--quiet", "old")
    project.write("old/file", "told by its commit alone")
    project.take()
    project.git("init", "--quiet", "new")
    project.git("init", "--quiet", "src/deep")
    for name in ("new/file", "src/deep/new.c", "old/other"):
        project.write(name, "hidden")
    created = {"file created new/file", "file created src/deep/new.c", "nested changed old/"}
    assert project.kinds() == {"inner created new/.git", "inner created src/deep/.git", *created}
    assert project.undo().failed == {}
    assert not (project.tree / "new/file").exists()
    assert not (project.tree / "src/deep/new.c").exists()
    assert (project.tree / "src/deep/er/util.c").exists()


def test_protected_files_in_a_nested_repository_are_seen(project: Project) -> None:
    project.protect = ("lib/tests/**", "*.json")
    project.git("init", "--quiet", "lib")
    project.write("lib/tests/old.c", "mine")
    project.take()
    for name in ("lib/tests/old.c", "lib/tests/new.c", "lib/code.c"):
        project.write(name, "theirs")
    assert project.kinds() == {"file changed lib/tests/old.c", "file created lib/tests/new.c", "nested changed lib/"}


@pytest.mark.parametrize("setting", [("core.worktree", "../src"), ("core.bare", "true")])
def test_a_config_that_hides_the_work_tree_is_undone_also_for_one_who_may_commit(
    project: Project, setting: tuple[str, str]
) -> None:
    project.take()
    was = state(project)
    project.git("config", *setting)
    assert Area.REPOSITORY in {change.area for change in project.split(EVERYTHING).forbidden}
    assert project.undo(EVERYTHING).failed == {}
    assert state(project) == was


def test_a_config_with_other_things_in_it_is_left_to_one_who_may_commit(project: Project) -> None:
    project.take()
    project.git("config", "core.autocrlf", "false")
    assert project.split(EVERYTHING).forbidden == ()


def test_a_branch_whose_name_contains_a_line_end_of_other_systems(project: Project) -> None:
    project.take()
    project.git("branch", "a\u2028b\x85")
    assert project.kinds() == {"ref created refs/heads/a\u2028b\x85"}
    assert project.undo().failed == {}
    assert project.kinds() == set()


def test_pipes_and_sockets_are_never_opened(project: Project) -> None:
    os.mkfifo(project.tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(project.tree)
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        project.take()
        assert project.changes() == ()


def test_a_file_that_cannot_be_read_is_compared_by_its_times(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refusing(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith("/run.sh"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    project.take()
    assert project.changes() == ()
    project.write("run.sh", "longer than before")
    assert project.kinds() == {"file changed run.sh"}
    assert list(project.undo().failed) == ["run.sh"]


def test_a_file_that_changes_while_it_is_read_ends_the_reading(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.read
    path = project.tree / "run.sh"

    def meddling(handle: int, size: int) -> bytes:
        if Path(f"/proc/self/fd/{handle}").resolve() == path.resolve():
            with path.open("a") as file:
                file.write("x")
        return real(handle, min(size, 64))

    monkeypatch.setattr(os, "read", meddling)
    with pytest.raises(TooLarge):
        project.take(seconds=1)


def test_deep_paths_and_names_of_any_bytes(project: Project) -> None:
    deep = "/".join(["d" * 50] * 60)
    names = [os.fsdecode(name) for name in (b"\xff\xfe", b"new\nline", b"  ", b"-n", b'"quoted"', b":(glob)x", b"*.py")]
    folder = os.open(project.tree, os.O_RDONLY)
    try:
        for part in deep.split("/"):
            os.mkdir(part, dir_fd=folder)
            folder, above = os.open(part, os.O_RDONLY, dir_fd=folder), folder
            os.close(above)
        os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    finally:
        os.close(folder)
    for name in names:
        project.write(name, "mine")
    project.take()
    was = state(project)
    for name in names:
        project.write(name, "theirs")
    (project.tree / names[0]).unlink()
    assert project.undo().failed == {}
    assert state(project) == was


def test_a_name_in_another_case_is_not_removed_with_the_file(project: Project) -> None:
    """On a file system that knows no case, both names are the same file."""
    project.take()
    assert project.before
    before, after = project.before, load(project.store, "turn")
    assert after
    object.__setattr__(before.place, "ignore_case", "true")
    after.files["RUN.sh"] = after.files["run.sh"]
    entry = before.files["run.sh"]
    assert compare(before, after) == (
        Change(Area.FILE, "RUN.sh", None, entry),
        Change(Area.FILE, "run.sh", entry, entry),
    )


def test_a_store_on_another_file_system_says_that_it_keeps_no_objects(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    assert project.take().objects_kept is False


def test_a_damaged_snapshot_is_an_error(project: Project) -> None:
    project.take()
    file = project.store.folder / "turn.json"
    table = json.loads(file.read_text())["table"]
    for text in ("{", "[]", "{}", json.dumps({"table": table}), json.dumps({"table": table, "staged": 1})):
        file.write_text(text)
        with pytest.raises(NotGuarded, match="cannot be read"):
            load(project.store, "turn")


def test_a_damaged_plan_is_an_error(project: Project) -> None:
    for text in ("{", "[]", "{}", '{"changes": [{}]}', '{"changes": [], "index": null, "place": {}}'):
        (project.store.folder / "undo.plan").write_text(text)
        with pytest.raises(NotGuarded, match="cannot be read"):
            finish(project.store)
