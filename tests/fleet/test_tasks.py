"""The name of a task, and the settings that travel with it."""

import json
from pathlib import Path

import pytest

from quintet.config import load_settings
from quintet.errors import QueueError
from quintet.fleet.task_settings import load_task_settings, own_prompt_texts, settings_document
from quintet.fleet.tasks import TaskSpec, branch_of, task_id
from quintet.loop.decide.prompts.texts import shipped_texts
from tests.stub.replies import TASK


def test_the_same_text_at_the_same_commit_of_the_same_repository_has_one_name() -> None:
    name = task_id("Add a greeting!", "url", "c1", "text")
    assert name.startswith("add-a-greeting-")
    assert task_id("Add a greeting!", "url", "c1", " text\n") == name
    others = {
        task_id("Add a greeting!", *words)
        for words in (("url2", "c1", "text"), ("url", "c2", "text"), ("url", "c1", "t"))
    }
    assert len({name, *others}) == 4


@pytest.mark.parametrize("title", ["", "日本語", "x" * 300, "../../etc", "Grüße an alle", "a b" * 40])
def test_a_name_is_good_for_branches_and_folders(title: str) -> None:
    name = task_id(title, "url", "c", "t")
    assert name.isascii()
    assert len(name) < 52
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert branch_of(name, 1) == f"quintet/{name}"
    assert branch_of(name, 2) == f"quintet/{name}-try2"


def spec_of(folder: Path, **more: object) -> TaskSpec:
    loaded = load_settings(None, {}, {"wd": str(folder)}, folder)
    texts = own_prompt_texts(loaded.settings.prompts_dir)
    fields = {"repository": str(folder), "is_local": True, "base": "c", "text": TASK}
    return TaskSpec.model_validate(fields | {"settings": settings_document(loaded), "prompt_texts": texts} | more)


def test_the_settings_of_a_project_come_out_as_they_went_in(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "texts", elsewhere):
        folder.mkdir(parents=True)
    name = next(iter(shipped_texts()))
    (project / "texts" / f"{name}.md").write_text("My own words.")
    document = {
        "provider": "claude_code",
        "limits": {"max_rounds": 3, "max_limit_wait": 5},
        "prompts_dir": "texts",
        "state_file": "elsewhere.json",
        "queue": {"url": "postgresql://anna:hunter2@db/q", "push_failed": True},
        "agents": {"tester": {"model": "small", "args": ["--fast"]}},
        "prices": {"claude_code": {"input": 1, "output": 2}},
    }
    (project / "quintet.json").write_text(json.dumps(document))
    spec = spec_of(project)
    assert "hunter2" not in spec.model_dump_json()
    assert str(tmp_path) not in json.dumps(spec.settings)
    settings = load_task_settings(
        TaskSpec.model_validate_json(spec.model_dump_json()), "t-1", 1, elsewhere, {}
    ).settings
    assert (settings.wd, settings.prompt, settings.max_rounds) == (elsewhere, TASK, 3)
    assert (settings.agents["tester"].model, settings.agents["tester"].args) == ("small", ("--fast",))
    assert {agent.provider for agent in settings.agents.values()} == {"claude_code"}
    assert settings.prices == {"claude_code": {"input": 1.0, "output": 2.0}}
    assert (Path(settings.prompts_dir) / f"{name}.md").is_file()
    assert (settings.queue_push_failed, settings.queue_url, settings.cleanup_on_exit) == (True, "", True)
    assert (settings.workspace_branch, settings.workspace_base) == ("quintet/t-1", "c")


def test_the_run_of_a_task_with_a_remote_pushes_nothing_itself(tmp_path: Path) -> None:
    document = {"post_processing": {"push": "origin other", "pull_request": "draft"}}
    (tmp_path / "quintet.json").write_text(json.dumps(document))
    for is_local, pushes in ((True, ("origin other", "draft")), (False, ("", "off"))):
        settings = load_task_settings(spec_of(tmp_path, is_local=is_local), "t-1", 1, tmp_path, {}).settings
        assert (settings.push_to, settings.post_pr) == pushes


def test_a_terminal_server_of_ones_own_is_refused(tmp_path: Path) -> None:
    (tmp_path / "quintet.json").write_text(json.dumps({"api": "http://127.0.0.1:9"}))
    with pytest.raises(QueueError, match="API names a terminal server"):
        spec_of(tmp_path)
