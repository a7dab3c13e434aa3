"""Honest behaviour raises no alarm."""

import os
from pathlib import Path

import pytest

from quintet.guard import Rules
from tests.guard.projects import EVERYTHING, NOTHING, OPENSPEC, Deed, Project, git, make


def touched(project: Project) -> Project:
    (project.tree / "run.sh").touch()
    return project


def rebuild(project: Project) -> None:
    project.write("build/out.o", "again")
    project.write("build/deep/new.bin", "x")
    project.write("src/main.o", "x")


def stash_and_pop(project: Project) -> None:
    project.git("stash")
    project.git("stash", "pop", "--index")


def rewrite_with_the_same_bytes(project: Project) -> None:
    for name in ("run.sh", "image.bin"):
        path = project.tree / name
        content, mode = path.read_bytes(), path.stat().st_mode
        path.unlink()
        path.write_bytes(content)
        path.chmod(mode)


def add_submodule(project: Project) -> None:
    git(project.tree.parent, "init", "--quiet", "library")
    library = project.tree.parent / "library"
    git(library, "commit", "--quiet", "--allow-empty", "--message", "x")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")


def move_everything(project: Project) -> None:
    project.git("mv", "src", "source")
    project.git("commit", "--quiet", "--all", "--message", "move")


READING: dict[str, Deed] = {
    "does nothing": lambda _: None,
    "reads everything": lambda p: [path.read_bytes() for path in p.tree.rglob("*") if path.is_file()],
    "git status refreshes the index": lambda p: touched(p).git("status"),
    "git diff, log and show": lambda p: [p.git("diff"), p.git("log", "--stat"), p.git("show", "HEAD")],
    "git gc packs refs and objects": lambda p: p.git("gc", "--quiet"),
    "git add --refresh": lambda p: touched(p).git("add", "--refresh", "."),
    "build output and caches that are ignored": rebuild,
    "touches files": touched,
    "writes the same bytes again": rewrite_with_the_same_bytes,
    "writes to .tmp": lambda p: p.write(".tmp/run/response.md", "RESULT: PASS"),
    "edits and puts back": lambda p: [p.write("run.sh", "x"), p.write("run.sh", "#!/bin/sh\n")],
    "makes a file and removes it": lambda p: p.write("new/scratch", "x").unlink(),
    "stashes and pops": stash_and_pop,
    "fetches": lambda p: p.git("fetch", "--quiet", ".", "main:refs/remotes/origin/main"),
    "checks out the branch that it is on": lambda p: p.git("checkout", "--quiet", "main"),
}

WORKING: dict[str, Deed] = {
    "edits, deletes, adds": lambda p: [
        p.write("src/main.c", "x"),
        p.write("new.c", "x"),
        p.git("rm", "--quiet", "run.sh"),
    ],
    "commits": lambda p: [p.git("add", "--all"), p.git("commit", "--quiet", "--message", "x")],
    "makes a branch and switches": lambda p: p.git("checkout", "--quiet", "-b", "feature"),
    "tags": lambda p: p.git("tag", "v2"),
    "moves and renames": move_everything,
    "adds a submodule": add_submodule,
    "changes .gitignore": lambda p: [p.write(".gitignore", "*.log\n"), p.write("a.log", "x")],
    "formats everything": lambda p: [path.write_bytes(b"x") for path in (p.tree / "src").rglob("*.c")],
    "installs a hook": lambda p: p.write(".git/hooks/pre-commit", "#!/bin/sh\n"),
    "works on the specification": lambda p: p.write("openspec/changes/a/proposal.md", "x"),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make(tmp_path)
    project.take()
    return project


@pytest.mark.parametrize("name", READING)
def test_a_reviewer_or_tester(project: Project, name: str) -> None:
    READING[name](project)
    assert project.changes() == ()


@pytest.mark.parametrize("name", WORKING)
def test_a_programmer(project: Project, name: str) -> None:
    WORKING[name](project)
    split = project.split(EVERYTHING)
    assert split.forbidden == ()
    assert split.allowed


def test_an_analyst(project: Project) -> None:
    WORKING["works on the specification"](project)
    split = project.split(OPENSPEC)
    assert (len(split.allowed), split.forbidden) == (1, ())


def test_what_everybody_may_write(project: Project) -> None:
    project.write("reports/junit.xml", "x")
    assert project.split(Rules(allow=("reports/**",))).forbidden == ()
    assert project.split(NOTHING).forbidden


def test_files_of_a_scenario_go_and_the_verdict_stands(project: Project) -> None:
    project.write("scenario/out.txt", "x")
    assert not project.split(NOTHING).serious
    project.undo()
    assert not (project.tree / "scenario").exists()


def test_an_empty_folder_of_the_user_stays_when_what_was_put_there_goes(project: Project) -> None:
    for name in ("logs/old", "out"):
        (project.tree / name).mkdir(parents=True)
    project.take()
    for name in ("logs/old/new/x", "out/x", "other/x"):
        project.write(name, "x")
    assert project.undo().failed == {}
    left = {str(path.relative_to(project.tree)) for path in project.tree.rglob("*") if path.is_dir()}
    assert {"logs/old", "out"} <= left
    assert not {"logs/old/new", "other"} & left


def test_a_restored_file_is_new_to_build_tools(project: Project) -> None:
    path = project.tree / "run.sh"
    os.utime(path, (1, 1))
    project.take()
    path.write_text("edited")
    os.utime(path, (2, 2))
    project.undo()
    assert path.stat().st_mtime > 2
