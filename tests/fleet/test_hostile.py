"""Strange task files, and rows in the database that nobody has added with `queue add`."""

import json
from pathlib import Path
from typing import Any

import pytest

from quintet.config import load_settings
from quintet.errors import QueueError
from quintet.fleet.add import find_source
from quintet.fleet.tasks import TaskStatus, read_spec
from tests.fleet.rig import LONG_TASK, Fleet
from tests.workspace.repositories import sh

SPEC: dict[str, Any] = {"repository": "/r.git", "is_local": False, "base": "c1" * 20, "text": "t", "settings": {}}


@pytest.mark.parametrize(
    "changed",
    [
        {"repository": "--upload-pack=touch /tmp/x"},
        {"repository": "ext::sh -c 'touch /tmp/x'"},
        {"base": "--orphan"},
        {"base": "main"},
        {"folder": "../../elsewhere"},
        {"folder": "/etc"},
        {"prompt_texts": {"../../../.bashrc": "x"}},
        {"settings": 5},
    ],
)
def test_a_spec_that_leads_elsewhere_is_refused_in_one_line(changed: dict[str, Any]) -> None:
    assert read_spec("a-1", SPEC).repository == "/r.git"
    with pytest.raises(QueueError, match=r"^the task a-1 was not added by Quintet: ") as caught:
        read_spec("a-1", SPEC | changed)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["../../x", "-x", "", "a/b", "a b", "A", "a\n", "a" * 80])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(QueueError, match="was not added by Quintet"):
        read_spec(name, SPEC)


def test_rows_with_such_names_are_not_there_for_anybody(queue: Fleet) -> None:
    task = queue.add("a")
    queue.sql("UPDATE workflow_status SET workflow_uuid = '../../x'")
    assert queue.database.tasks() == queue.database.living() == []
    assert queue.database.ids() == []
    assert queue.refused("queue", "show", task) == f"there is no task {task} in the queue"


def test_an_empty_name_means_no_task(queue: Fleet) -> None:
    task = queue.add("a")
    assert queue.refused("queue", "cancel", "") == "there is no task '' in the queue"
    assert queue.refused("queue", "cancel", "--", "--all") == "there is no task --all in the queue"
    assert queue.task(task).status is TaskStatus.WAITING


def test_a_remote_that_is_an_option_is_refused(queue: Fleet, tmp_path: Path) -> None:
    settings = queue.project.wd / ".git/config"
    mark = tmp_path / "mark"
    settings.write_text(f'{settings.read_text()}[remote "origin"]\n\turl = --upload-pack=touch {mark};\n')
    flags = {"wd": str(queue.project.wd)}
    loaded = load_settings(None, queue.project.env, flags, queue.project.wd)
    with pytest.raises(QueueError, match="the remote origin cannot be used: its address begins with -"):
        find_source(loaded.settings, is_local=False)
    assert not mark.exists()


def test_a_strange_text_comes_out_as_it_went_in_and_steers_no_terminal(queue: Fleet) -> None:
    text = LONG_TASK.replace("Add a greeting", "Add \x1b[31ma\x00 greeting\x07") + "\r\n🎻 é\r\n" * 20_000
    task = queue.queue("add", queue.task_file("a", text)).splitlines()[0]
    shown = queue.queue("show", task)
    assert not {"\x1b", "\x00", "\x07"} & set(shown)
    assert "Add a greeting to the project" in " ".join(shown.split())
    kept = json.loads(queue.queue("show", task, "--json"))["text"]
    assert kept == Path(queue.task_file("a", text)).read_text(encoding="utf-8")
    assert sh(queue.project.wd, f"git check-ref-format --branch quintet/{task}") == f"quintet/{task}"
