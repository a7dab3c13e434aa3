"""The pull request of a task: opened from the clone by a stand-in for gh that notes its calls."""

import os
from pathlib import Path

import pytest

from quintet.fleet.checkpoint import Clone
from quintet.fleet.pull_request import open_for
from quintet.fleet.task_settings import load_task_settings
from quintet.fleet.tasks import QueuedTask, TaskSpec, TaskStatus
from quintet.layout import STATE_FILE
from quintet.loop.decide.flow import first_state
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import save
from tests.fleet.test_checkpoint import NAME, RUN, opened, spec
from tests.loop.run.test_hand_over import PROGRAM, noted
from tests.stub.replies import TASK
from tests.workspace.repositories import sh

__all__ = ["spec"]


@pytest.fixture
def clone(spec: TaskSpec) -> Clone:
    """A clone in which a run has ended."""
    wish = {"post_processing": {"pull_request": "draft"}}
    made = opened(spec.model_copy(update={"text": TASK, "settings": wish}))
    settings = load_task_settings(made.spec, NAME, 1, made.tree, {}).settings
    record = RunRecord(made.tree, RUN)
    record.open()
    save(first_state(settings, RUN, made.spec.base), made.tree / STATE_FILE, record, "")
    return made


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(PROGRAM)
    (folder / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder / "calls"


def test_a_pull_request_is_opened_for_the_branch_of_the_task(clone: Clone, calls: Path) -> None:
    sh(clone.top, "git remote remove origin")
    task = QueuedTask(id=NAME, title="", repository="", status=TaskStatus.RUNNING)
    assert open_for(task, clone) == ""
    listed, created = noted(calls)
    assert listed[1:4] == ["pr", "list", "--head"]
    assert created[1:5] == ["pr", "create", "--head", f"quintet/{NAME}"]
    assert "--draft" in created
    assert sh(clone.top, "git remote get-url origin") == clone.spec.repository


def test_why_there_is_no_pull_request_is_told_without_a_folder_that_will_be_gone(
    clone: Clone, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_FAILS", "1")
    task = QueuedTask(id=NAME, title="", repository="", status=TaskStatus.RUNNING)
    assert open_for(task, clone) == "no pull request: gh: not logged in"
    assert len(noted(calls)) == 2
