"""What was undone is kept: a patch that git can apply, a bundle of commits, a list of the rest."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.guard.projects import Project, git, make, state


def test_the_patch_does_again_what_was_undone(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    project.write("image.bin", bytes(range(255, -1, -1)) * 8)
    project.write("crlf.txt", b"one\r\ntwo\r\n")
    project.write("empty", b"")
    project.write(os.fsdecode(b'odd \xff"\\\n\tname'), "x")
    (project.tree / "run.sh").unlink()
    (project.tree / "link").unlink()
    (project.tree / "link").symlink_to("elsewhere")
    (project.tree / "src/main.c").chmod(0o755)
    edited = state(project)
    project.undo()
    applied = subprocess.run(["git", "apply", project.patch], cwd=project.tree, capture_output=True, check=False)
    assert applied.returncode == 0, applied.stderr
    assert state(project) == edited


def test_mode_bits_that_no_patch_can_say_are_listed(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    (project.tree / "run.sh").chmod(0o750)
    project.undo()
    assert b"# mode 0755 -> 0750 run.sh\n" in project.patch.read_bytes()


def test_commits_are_kept_in_a_bundle_that_brings_them_back(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    project.git("commit", "--quiet", "--all", "--message", "by an agent")
    made = project.git("rev-parse", "HEAD")
    project.git("checkout", "--quiet", "--detach")
    project.git("commit", "--quiet", "--allow-empty", "--message", "on no branch")
    detached = project.git("rev-parse", "HEAD")
    done = project.undo()
    bundle = project.patch.with_suffix(".bundle")
    assert bundle in done.kept
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "--quiet", "--prune=now")
    project.git("fetch", "--quiet", str(bundle), "refs/*:refs/from/*")
    assert {made, detached} <= set(project.git("for-each-ref", "--format=%(objectname)", "refs/from").split())


def test_no_bundle_where_no_commit_was_made(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    project.git("branch", "new")
    assert project.undo().kept == [project.patch]


def test_hooks_and_config_are_kept_beside_the_patch(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    project.write(".git/hooks/pre-push", "#!/bin/sh\nevil\n")
    project.undo()
    assert b"+evil\n" in project.patch.with_suffix(".git.patch").read_bytes()


def test_archive_and_store_are_private(tmp_path: Path) -> None:
    project = make(tmp_path)
    project.take()
    project.write("src/main.c", "x")
    project.undo()
    assert project.patch.stat().st_mode & 0o077 == 0
    assert project.store.folder.stat().st_mode & 0o077 == 0
    for path in project.store.folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_bundle_of_a_shallow_clone(tmp_path: Path) -> None:
    project = make(tmp_path / "origin")
    git(project.tree, "commit", "--quiet", "--allow-empty", "--message", "two")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{project.tree}", str(clone))
    shallow = Project(clone, project.store, project.patch)
    shallow.take()
    (clone / "run.sh").write_text("x")
    shallow.git("commit", "--quiet", "--all", "--message", "by an agent")
    done = shallow.undo()
    assert (done.failed, done.notes) == ({}, [])
    assert project.patch.with_suffix(".bundle").exists()
    shutil.rmtree(clone)
