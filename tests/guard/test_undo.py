"""Whatever an agent did, the project is afterwards as it was before, and what was undone is kept."""

import os
import shutil
from pathlib import Path

import pytest

from tests.guard.projects import EVERYTHING, NOTHING, Deed, Project, make, state


def commit(project: Project, *options: str) -> None:
    project.git("commit", "--quiet", "--all", "--message", "agent", *options)


def remove(path: Path) -> Path:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    return path


def relink(project: Project, name: str, target: str) -> None:
    remove(project.tree / name).symlink_to(target)


def replace_by_folder(project: Project) -> None:
    (project.tree / "run.sh").unlink()
    project.write("run.sh/inner.txt", "x")
    project.write("run.sh/ignored.o", "x")


def replace_by_file(project: Project) -> None:
    shutil.rmtree(project.tree / "src")
    project.write("src", "a file now")


def replace_by_link(project: Project) -> None:
    outside = project.tree.parent / "outside"
    outside.mkdir()
    (outside / "main.c").write_text("not yours")
    shutil.rmtree(project.tree / "src")
    (project.tree / "src").symlink_to(outside)


def rewrite_history(project: Project) -> None:
    commit(project, "--amend")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("stash", "clear")
    project.git("gc", "--quiet", "--prune=now")


def swap_ref_and_folder(project: Project) -> None:
    project.git("branch", "--delete", "--force", "side")
    project.git("branch", "side/deeper")


def new_repository(project: Project) -> None:
    shutil.rmtree(project.tree / ".git")
    project.git("init", "--quiet", "--initial-branch=other")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "mine")


def hook(project: Project) -> None:
    path = project.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    (project.tree / ".git/hooks/post-checkout").symlink_to("pre-commit")


SERIOUS: dict[str, Deed] = {
    "edits a file": lambda p: p.write("src/main.c", "edited\n"),
    "edits at the same size": lambda p: p.write("src/main.c", "DIRTY\n"),
    "edits an untracked file": lambda p: p.write("notes/untracked.txt", "theirs\n"),
    "edits a binary file": lambda p: p.write("image.bin", b"\0\r\n\xff"),
    "deletes a file": lambda p: (p.tree / "src/main.c").unlink(),
    "deletes a folder": lambda p: shutil.rmtree(p.tree / "src"),
    "deletes an untracked file": lambda p: shutil.rmtree(p.tree / "notes"),
    "deletes every file": lambda p: [remove(path) for path in p.tree.glob("[!.b]*")],
    "changes mode bits": lambda p: (p.tree / "run.sh").chmod(0o640),
    "changes a folder's mode bits": lambda p: (p.tree / "src").chmod(0o700),
    "makes a file a folder": replace_by_folder,
    "makes a folder a file": replace_by_file,
    "makes a folder a link": replace_by_link,
    "makes a file a link": lambda p: relink(p, "run.sh", "/dev/null"),
    "makes a file a pipe": lambda p: os.mkfifo(remove(p.tree / "run.sh")),
    "turns a link": lambda p: relink(p, "link", "/etc/passwd"),
    "makes a link a file": lambda p: [remove(p.tree / "link"), p.write("link", "int main;\n")],
    "renames a file": lambda p: (p.tree / "run.sh").rename(p.tree / "walk.sh"),
    "renames by case": lambda p: (p.tree / "run.sh").rename(p.tree / "Run.sh"),
    "widens .gitignore": lambda p: [p.write(".gitignore", "*\n"), p.write("hidden.txt", "x")],
    "commits": commit,
    "commits nothing": lambda p: p.git("commit", "--quiet", "--allow-empty", "--message", "empty"),
    "amends": lambda p: commit(p, "--amend"),
    "rewrites history and prunes it": rewrite_history,
    "resets hard": lambda p: p.git("reset", "--hard", "--quiet"),
    "checks everything out": lambda p: p.git("checkout", "--quiet", "HEAD", "--", "."),
    "cleans": lambda p: p.git("clean", "--quiet", "-fd"),
    "stashes": lambda p: p.git("stash", "--include-untracked"),
    "switches the branch": lambda p: p.git("checkout", "--quiet", "-b", "elsewhere"),
    "detaches HEAD": lambda p: p.git("checkout", "--quiet", "--detach"),
    "moves a branch": lambda p: p.git("branch", "--force", "side", p.git("commit-tree", "-m", "x", "HEAD^{tree}")),
    "deletes a branch": lambda p: p.git("branch", "--delete", "--force", "side"),
    "puts a branch in a branch's place": swap_ref_and_folder,
    "breaks a branch's file": lambda p: p.write(".git/refs/heads/side", "rubbish\n"),
    "moves a tag": lambda p: p.git("tag", "--force", "v1", p.git("commit-tree", "-m", "x", "HEAD^{tree}")),
    "deletes a tag": lambda p: p.git("tag", "--delete", "v1"),
    "breaks git's config": lambda p: p.write(".git/config", "[core\n"),
    "breaks the index": lambda p: p.write(".git/index", "rubbish"),
    "deletes HEAD": lambda p: (p.tree / ".git/HEAD").unlink(),
    "deletes .git": lambda p: shutil.rmtree(p.tree / ".git"),
    "makes a new repository": new_repository,
}

HARMLESS: dict[str, Deed] = {
    "makes a file": lambda p: p.write("new/deep/file.txt", "x"),
    "makes an executable": lambda p: p.write("tool", "x").chmod(0o755),
    "makes a link to a folder outside": lambda p: (p.tree / "out").symlink_to("/tmp"),
    "makes a dangling link": lambda p: (p.tree / "dangling").symlink_to("nowhere"),
    "hides files by a new .gitignore": lambda p: [p.write("secret/.gitignore", "*\n"), p.write("secret/x.py", "x")],
    "hides files by info/exclude": lambda p: [p.write(".git/info/exclude", "*\n"), p.write("hidden.py", "x")],
    "hides files by config": lambda p: [
        p.git("config", "core.excludesFile", str(p.write("../ignore", "*\n"))),
        p.write("hidden.py", "x"),
    ],
    "names a file by odd bytes": lambda p: Path(os.fsdecode(os.fsencode(p.tree) + b'/\xff\n"\\ \t*')).write_text("x"),
    "stages": lambda p: p.git("add", "src/main.c"),
    "unstages": lambda p: p.git("reset", "--quiet"),
    "removes from the index": lambda p: p.git("rm", "--quiet", "--cached", "run.sh"),
    "hides an edit from git": lambda p: p.git("update-index", "--assume-unchanged", "src/main.c"),
    "makes a branch": lambda p: p.git("branch", "new"),
    "makes a tag": lambda p: p.git("tag", "--annotate", "--message", "x", "v2"),
    "drops a stash": lambda p: p.git("stash", "drop"),
    "adds a stash entry": lambda p: p.git("stash", "store", p.git("stash", "create")),
    "changes config": lambda p: p.git("config", "core.fsmonitor", "/bin/false"),
    "writes a hook": hook,
    "deletes the hooks": lambda p: shutil.rmtree(p.tree / ".git/hooks"),
    "begins a merge": lambda p: p.write(".git/MERGE_HEAD", p.git("rev-parse", "side") + "\n"),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make(tmp_path)


@pytest.mark.parametrize("name", [*SERIOUS, *HARMLESS])
def test_what_an_agent_did_is_undone_exactly(project: Project, name: str) -> None:
    project.take()
    was = state(project)
    (SERIOUS | HARMLESS)[name](project)

    split = project.split(NOTHING)
    assert split.forbidden
    assert split.serious is (name in SERIOUS)
    done = project.undo()

    assert done.failed == {}
    assert state(project) == was
    assert project.changes() == ()
    assert project.patch.read_bytes()
    assert not list(project.tree.rglob("*.tmp"))


def test_a_repository_comes_back_as_a_whole_also_from_one_who_may_commit(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    was = state(project)
    project.write("src/main.c", "allowed\n")
    shutil.rmtree(project.tree / ".git")
    project.undo(EVERYTHING)
    project.write("src/main.c", "dirty\n")
    assert state(project) == was


def test_git_still_sees_an_edit_that_is_as_young_as_its_index(tmp_path: Path) -> None:
    """Such an edit, of the same size, is told from no edit only by the time of the index."""
    project = make(tmp_path)
    project.write("racy.txt", "one\n")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "racy")
    project.write("racy.txt", "two\n")
    young = (project.tree / ".git" / "index").stat().st_mtime_ns // 10**9 * 10**9
    for path in (project.tree / "racy.txt", project.tree / ".git" / "index"):
        os.utime(path, ns=(young, young))
    project.take()
    project.git("rm", "--quiet", "--cached", "image.bin")
    os.utime(project.tree / ".git" / "index", ns=(young + 5 * 10**9, young + 5 * 10**9))
    project.undo()
    index = project.tree / ".git" / "index"
    assert index.stat().st_mtime_ns == young
