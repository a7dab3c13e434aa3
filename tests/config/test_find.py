"""The project's own `quintet.json`, found where no config file is named."""

import json
from pathlib import Path

import pytest

from quintet.config import load_settings
from quintet.errors import ConfigError


def write(folder: Path, **document: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "quintet.json").write_text(json.dumps(document), encoding="utf-8")


def test_it_is_found_in_the_current_directory(tmp_path: Path) -> None:
    write(tmp_path, provider="scripted")
    loaded = load_settings(None, {}, {}, tmp_path)
    assert loaded.settings.provider == "scripted"
    assert loaded.origin["provider"] == "provider in quintet.json"


@pytest.mark.parametrize("by_flag", [True, False])
def test_it_is_that_of_the_project_and_its_paths_begin_there(by_flag: bool, tmp_path: Path) -> None:
    write(tmp_path, provider="claude_code")
    project = tmp_path / "project"
    write(project, prompt_file="task.md", state_file="state.json", prompts_dir="texts")
    (project / "task.md").write_text("the task", encoding="utf-8")
    env, flags = ({}, {"wd": "project"}) if by_flag else ({"WD": "project"}, {})
    settings = load_settings(None, env, flags, tmp_path).settings
    assert settings.prompt == "the task"
    assert settings.prompt_file == str(project / "task.md")
    assert settings.state_file == project / "state.json"
    assert settings.prompts_dir == str(project / "texts")
    assert settings.provider == "codex", "the one in the current directory is another project's"


def test_a_path_in_the_environment_begins_at_the_current_directory(tmp_path: Path) -> None:
    write(tmp_path / "project", prompt_file="nowhere.md")
    (tmp_path / "task.md").write_text("here", encoding="utf-8")
    env = {"WD": "project", "PROMPT_FILE": "task.md"}
    assert load_settings(None, env, {}, tmp_path).settings.prompt == "here"


def test_a_file_that_is_named_is_the_only_one(tmp_path: Path) -> None:
    write(tmp_path, provider="scripted", verify_cmd="true")
    (tmp_path / "other.json").write_text('{"provider": "claude_code"}', encoding="utf-8")
    settings = load_settings(Path("other.json"), {}, {}, tmp_path).settings
    assert (settings.provider, settings.verify_cmd) == ("claude_code", "")


def test_a_bad_one_is_named(tmp_path: Path) -> None:
    write(tmp_path, provder="codex")
    with pytest.raises(ConfigError, match=r"unknown key \"provder\" in quintet\.json.*did you mean provider\?"):
        load_settings(None, {}, {}, tmp_path)
