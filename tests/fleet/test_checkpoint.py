"""A task's work in its remote: it comes back whole on another machine, and a late worker can push nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quintet import files
from quintet.errors import GitError, QueueError
from quintet.fleet import leftovers
from quintet.fleet.checkpoint import (
    Clone,
    Fenced,
    PushRefused,
    forget,
    make_checkpoint,
    stale_trees,
    work_commit,
)
from quintet.fleet.records import bring_records, read_records
from quintet.fleet.tasks import Needs, QueuedTask, TaskOutcome, TaskProgress, TaskSpec, TaskStatus
from quintet.layout import JOURNAL, SETTINGS, STATE, record_folder
from tests.stub.ordinary import without_root_powers
from tests.workspace.repositories import sh

RUN = "20260101-000000-abcdef"
NAME = "add-a-greeting-12345678"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskSpec:
    """A repository with a bare remote; whoever commits is nobody."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    wd = tmp_path / "shop"
    wd.mkdir()
    sh(wd, "git init --quiet --initial-branch=main && git config user.name S && git config user.email s@localhost")
    (wd / "kept.txt").write_text("kept\n")
    (wd / "gone.txt").write_text("gone\n")
    (wd / ".gitignore").write_text(".env\n")
    sh(wd, "git add --all && git commit --quiet --message Begin && git init --quiet --bare ../remote.git")
    sh(wd, "git push --quiet ../remote.git main")
    base = sh(wd, "git rev-parse HEAD")
    return TaskSpec(repository=str(tmp_path / "remote.git"), is_local=False, base=base, text="t", settings={})


def machine(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on as another machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))


def work(clone: Clone) -> None:
    """Change something in every way, and keep records."""
    (clone.tree / "kept.txt").write_text("changed\n")
    (clone.tree / "new.txt").write_text("new\n")
    (clone.tree / "gone.txt").unlink()
    (clone.tree / ".env").write_text("SECRET=1\n")
    (clone.tree / ".tmp" / "records").mkdir(parents=True)
    (clone.tree / ".tmp" / "records" / STATE).write_text('{"run_id": "forged"}')
    for name, text in ((STATE, f'{{"run_id": "{RUN}"}}'), (JOURNAL, "an event\n"), ("001-analyst.md", "a reply\n")):
        files.make_folder(record_folder(RUN))
        files.write(record_folder(RUN) / name, text)


def opened(spec: TaskSpec, recorded: str = "", *, keep: bool = False, has_task: bool = True) -> Clone:
    """The clone of a worker, for which the database has recorded a checkpoint."""
    clone = Clone(spec, NAME, 1, lambda: has_task)
    clone.open(recorded, keep=keep)
    return clone


def refs(spec: TaskSpec) -> list[str]:
    return sh(Path(spec.repository), "git for-each-ref --format='%(refname)'").split()


def test_a_checkpoint_comes_back_whole_and_without_what_git_ignores(
    spec: TaskSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("anna", tmp_path, monkeypatch)
    first = opened(spec)
    work(first)
    first.push(make_checkpoint(first.top, RUN))
    assert read_records(spec.repository, first.pushed) == (RUN, b"an event\n")
    machine("bert", tmp_path, monkeypatch)
    second = opened(spec, first.pushed)
    assert sh(second.tree, "git status --porcelain") == "D gone.txt\n M kept.txt\n?? new.txt"
    assert (second.tree / "kept.txt").read_text() == "changed\n"
    assert not (second.tree / ".env").exists()
    assert not (second.tree / ".tmp").exists(), "agents could put forged records there"
    assert sorted(path.name for path in second.records.iterdir()) == ["001-analyst.md", JOURNAL, STATE]
    assert RUN in (second.records / STATE).read_text()
    assert sh(second.tree, "git symbolic-ref --short HEAD") == f"quintet/{NAME}"


def test_records_of_a_remote_lead_nowhere_else(spec: TaskSpec, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of this machine\n")
    clone = opened(spec)
    work(clone)
    (record_folder(RUN) / "002-tester.md").symlink_to(secret)
    clone.push(make_checkpoint(clone.top, RUN))
    for number, run_id in enumerate((RUN, "../../elsewhere")):
        project = tmp_path / f"project-{number}"
        project.mkdir()
        files.write(record_folder(RUN) / STATE, json.dumps({"run_id": run_id}))
        clone.push(make_checkpoint(clone.top, RUN))
        run = bring_records(spec.repository, clone.pushed, project)
        assert run == (project / ".tmp" / RUN if run_id == RUN else None)
    texts = {path.name: path.read_text() for path in (tmp_path / "project-0" / ".tmp" / RUN).iterdir()}
    assert texts["001-analyst.md"] == "a reply\n"
    assert texts["002-tester.md"] == str(secret)


def test_the_files_of_repositories_that_agents_made_are_in_a_checkpoint(
    spec: TaskSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("anna", tmp_path, monkeypatch)
    first = opened(spec)
    init = "git init --quiet && git config user.name S && git config user.email s@localhost"
    for folder in ("empty", "fixture", "cloned", "cloned/inner", "taken"):
        (first.tree / folder).mkdir()
        (first.tree / folder / "new.txt").write_text(f"{folder}\n")
        sh(first.tree / folder, "rm new.txt; git init" if folder == "empty" else init)
    (first.tree / "fixture/.gitignore").write_text("*.log\n")
    (first.tree / "fixture/test.log").write_text("ignored\n")
    for folder in ("cloned", "taken"):
        sh(first.tree / folder, "git add new.txt && git commit --quiet --message New")
    sh(first.tree, "git add taken kept.txt && git commit --quiet --message Taken")
    (first.tree / "taken/new.txt").write_text("changed\n")
    first.push(make_checkpoint(first.top, ""))
    machine("bert", tmp_path, monkeypatch)
    second = opened(spec, first.pushed)
    texts = {str(path.relative_to(second.tree)): path.read_text() for path in second.tree.rglob("*/new.txt")}
    assert texts == {
        "fixture/new.txt": "fixture\n",
        "cloned/new.txt": "cloned\n",
        "cloned/inner/new.txt": "cloned/inner\n",
        "taken/new.txt": "changed\n",
    }
    assert not (second.tree / "fixture/test.log").exists()
    second.push(make_checkpoint(second.top, ""))


def test_a_file_that_cannot_be_read_is_left_out_and_told(spec: TaskSpec) -> None:
    clone = opened(spec)
    (clone.tree / "new.txt").write_text("new\n")
    (clone.tree / "locked.txt").write_text("of another user\n")
    (clone.tree / "locked.txt").chmod(0)
    code = (
        "import pathlib, sys; from quintet.fleet.checkpoint import make_checkpoint, work_commit; "
        "top = pathlib.Path(sys.argv[1]); print(make_checkpoint(top, ''), *work_commit(top, 'new'))"
    )
    words = [*without_root_powers(), sys.executable, "-c", code, str(clone.top)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    checkpoint, commit, left_out = said.split(" ", 2)
    for made in (checkpoint, commit):
        assert sh(clone.top, f"git show --name-only --format= {made}") == "new.txt"
    assert left_out == "error: unable to index file 'locked.txt'\n"


def test_no_settings_of_a_machine_are_in_a_checkpoint(spec: TaskSpec) -> None:
    clone = opened(spec)
    work(clone)
    files.write(record_folder(RUN) / SETTINGS, '{"providers": {"mine": {"env": {"API_KEY": "sk-secret"}}}}')
    commit = make_checkpoint(clone.top, RUN)
    held = sh(clone.top, f"git ls-tree -r --name-only {commit}").splitlines()
    assert {f".tmp/records/{name}" for name in (STATE, JOURNAL)} <= set(held)
    assert "sk-secret" not in "".join(sh(clone.top, f"git cat-file blob {commit}:{name}") for name in held)


def test_a_worker_that_lost_its_task_can_push_neither_checkpoint_nor_result(
    spec: TaskSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("anna", tmp_path, monkeypatch)
    late = opened(spec, has_task=False)
    late.push(make_checkpoint(late.top, ""))
    machine("bert", tmp_path, monkeypatch)
    owner = opened(spec, late.pushed)
    with pytest.raises(Fenced):
        late.push(make_checkpoint(late.top, ""))
    (late.tree / "new.txt").write_text("late\n")
    outcome = TaskOutcome(verdict="PASS", commit=work_commit(late.top, "late")[0])
    with pytest.raises(Fenced):
        late.publish(outcome, late.branch, "")
    owner.push(make_checkpoint(owner.top, ""))
    assert refs(spec) == ["refs/heads/main", f"refs/quintet/{NAME}/state"]


def test_a_result_is_pushed_as_a_branch_and_an_archive(spec: TaskSpec) -> None:
    clone = opened(spec)
    work(clone)
    commit, left_out = work_commit(clone.top, "Quintet: a task")
    assert left_out == ""
    outcome = TaskOutcome(verdict="PASS", branch=clone.branch, commit=commit, run=RUN, tokens=7)
    clone.publish(outcome, clone.branch, make_checkpoint(clone.top, RUN))
    assert refs(spec) == ["refs/heads/main", f"refs/heads/quintet/{NAME}", f"refs/quintet/{NAME}/archive"]
    assert sh(Path(spec.repository), f"git show quintet/{NAME}:new.txt") == "new"
    assert read_records(spec.repository, clone.pushed) == (RUN, b"an event\n")
    assert forget(spec.repository, [NAME])
    assert refs(spec) == ["refs/heads/main", f"refs/heads/quintet/{NAME}"]


def test_the_clone_of_the_machine_that_had_the_task_last_goes_on_as_it_is(spec: TaskSpec) -> None:
    first = opened(spec)
    (first.tree / "new.txt").write_text("not in a checkpoint\n")
    again = opened(spec, first.pushed, keep=True)
    assert (again.tree / "new.txt").exists()
    assert not (opened(spec, again.pushed, keep=False).tree / "new.txt").exists()


def test_what_the_remote_lacks_or_refuses_is_one_line(spec: TaskSpec) -> None:
    with pytest.raises(QueueError, match=r"does not have the commit 1111111111$"):
        opened(spec.model_copy(update={"base": "1" * 40}))
    with pytest.raises(QueueError, match=r"src is not in the commit"):
        opened(spec.model_copy(update={"folder": "src"}))
    clone = opened(spec)
    shutil.move(spec.repository, f"{spec.repository}.away")
    with pytest.raises(GitError, match="cannot be pushed to"):
        clone.push(make_checkpoint(clone.top, ""))
    with pytest.raises(GitError, match="cannot be read"):
        opened(spec)


def test_a_remote_that_refuses_a_push_is_quoted(spec: TaskSpec) -> None:
    clone = opened(spec)
    hook = Path(spec.repository) / "hooks/update"
    hook.write_text("#!/bin/sh\necho 'File big.bin is 123 MB'\necho 'See the manual' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(
        PushRefused, match=r": \[remote rejected\] \(hook declined\): File big.bin is 123 MB / See the man"
    ):
        clone.push(make_checkpoint(clone.top, ""))
    hook.unlink()
    clone.push(make_checkpoint(clone.top, ""))


def lose_answer(spec: TaskSpec, ref: str) -> None:
    """Let the remote take the next push of a ref, and end before it says so."""
    hook = Path(spec.repository) / "hooks/reference-transaction"
    hook.write_text(f'#!/bin/sh\ngrep -q "{ref}$" && [ "$1" = committed ] && rm "$0" && kill -9 $PPID\nexit 0\n')
    hook.chmod(0o755)


def test_a_push_whose_answer_was_lost_counts_as_done(spec: TaskSpec) -> None:
    clone = opened(spec)
    checkpoint = make_checkpoint(clone.top, "")
    lose_answer(spec, clone.state_ref)
    with pytest.raises(GitError, match="cannot be pushed to"):
        clone.push(checkpoint)
    clone.push(checkpoint)
    lose_answer(spec, clone.state_ref)
    (clone.tree / "new.txt").write_text("new\n")
    with pytest.raises(GitError, match="cannot be pushed to"):
        clone.push(make_checkpoint(clone.top, ""))
    clone = opened(spec, checkpoint, keep=True)
    assert (clone.tree / "new.txt").exists()
    lose_answer(spec, clone.state_ref)
    with pytest.raises(GitError, match="cannot be pushed to"):
        clone.push(make_checkpoint(clone.top, ""))
    (clone.tree / "new.txt").write_text("newer\n")
    clone.push(make_checkpoint(clone.top, ""))
    outcome = TaskOutcome(verdict="PASS", branch=clone.branch, commit=spec.base)
    lose_answer(spec, clone.archive_ref)
    with pytest.raises(GitError, match="cannot be pushed to"):
        clone.publish(outcome, clone.branch, "")
    clone.publish(outcome, clone.branch, "")
    assert refs(spec) == ["refs/heads/main", f"refs/heads/quintet/{NAME}", f"refs/quintet/{NAME}/archive"]


def test_a_clone_is_not_kept_that_lacks_the_recorded_checkpoint(
    spec: TaskSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("anna", tmp_path, monkeypatch)
    first = opened(spec)
    (first.tree / "new.txt").write_text("of anna\n")
    machine("bert", tmp_path, monkeypatch)
    second = opened(spec, first.pushed)
    (second.tree / "new.txt").write_text("of bert\n")
    second.push(make_checkpoint(second.top, ""))
    machine("anna", tmp_path, monkeypatch)
    assert (opened(spec, second.pushed, keep=True).tree / "new.txt").read_text() == "of bert\n"


def test_a_clone_that_was_not_completed_is_made_again(spec: TaskSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(spec)
    (first.tree / "new.txt").write_text("new\n")
    first.push(make_checkpoint(first.top, ""))
    with monkeypatch.context() as patch:
        patch.setattr(Clone, "_restore", lambda *_: sys.exit("killed"))
        with pytest.raises(SystemExit):
            opened(spec, first.pushed)
    assert (opened(spec, first.pushed, keep=True).tree / "new.txt").read_text() == "new\n"


def test_agents_may_change_the_remotes_of_the_clone(spec: TaskSpec) -> None:
    clone = opened(spec)
    sh(clone.top, "git remote set-url origin /nowhere")
    clone.push(make_checkpoint(clone.top, ""))
    sh(clone.top, "git remote remove origin")
    clone.publish(TaskOutcome(verdict="PASS", commit=spec.base), clone.branch, "")
    assert f"refs/heads/quintet/{NAME}" in refs(spec)


def test_a_branch_that_became_a_folder_of_branches_can_be_fetched(spec: TaskSpec, tmp_path: Path) -> None:
    wd = tmp_path / "shop"
    sh(wd, "git push --quiet ../remote.git main:refs/heads/feature")
    opened(spec)
    sh(wd, "git commit --quiet --allow-empty --message More && git push --quiet ../remote.git :feature")
    sh(wd, "git push --quiet ../remote.git main:refs/heads/feature/x main")
    base = sh(wd, "git rev-parse HEAD")
    clone = opened(spec.model_copy(update={"base": base}))
    assert sh(clone.top, f"git cat-file -t {base}") == "commit"


def test_a_clone_that_cannot_be_removed_is_out_of_the_way(spec: TaskSpec) -> None:
    clone = opened(spec)
    for name in ("modules", "docker"):
        (clone.tree / name).mkdir()
        (clone.tree / name / "file").write_text("protected\n")
    (clone.tree / "modules").chmod(0o555)
    if os.geteuid() == 0:
        os.chown(clone.tree / "docker", 12345, 12345)
    code = (
        "import sys; from quintet.fleet.checkpoint import Clone; from quintet.fleet.tasks import TaskSpec; "
        f"Clone(TaskSpec.model_validate_json(sys.argv[1]), '{NAME}', 1).remove()"
    )
    words = [*without_root_powers(), sys.executable, "-c", code, spec.model_dump_json()]
    subprocess.run(words, check=True)
    left = [path.name for path in clone.top.parent.rglob("*") if path.is_file()]
    assert left == (["file"] if os.geteuid() == 0 else [])
    assert opened(spec).tree.is_dir()


def test_clones_that_no_task_needs_any_more_are_found(spec: TaskSpec) -> None:
    kept = opened(spec).top
    made = (kept.with_name(name) for name in ("ended-1", "elsewhere-2", "starting-3", "starting-3.new"))
    for folder in made:
        folder.mkdir()

    def task(name: str, home: str, place: str = "waiting") -> QueuedTask:
        return QueuedTask(
            id=name,
            title="",
            repository="",
            status=TaskStatus.RUNNING,
            needs=Needs(),
            progress=TaskProgress(home=home),
            place=place,
        )

    tasks = [task(NAME, "here"), task("elsewhere-2", "there"), task("starting-3", "there", "slot desk/1@here")]
    stale = stale_trees(tasks, "here")
    assert [path.name for path in stale] == ["elsewhere-2", "ended-1"]


def test_a_clone_that_a_slot_uses_is_not_removed_as_a_stale_one(
    spec: TaskSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("a", tmp_path, monkeypatch)
    first, second = opened(spec), opened(spec, keep=True)
    for clone in (first, second):
        monkeypatch.setattr("sys.stdin", [f"{clone.top}\n"])
        leftovers.main()
        assert (clone.tree / "kept.txt").exists()
        clone.close()
    leftovers.main()
    assert not first.top.exists()
