"""Scenarios of the seeds about the settings."""

import json
from pathlib import Path
from typing import Any

import pytest

from quintet.config import Settings, load_settings


def loaded(tmp_path: Path, document: Any = None, **env: str) -> Settings:
    file = None
    if document is not None:
        file = tmp_path / "config.json"
        file.write_text(json.dumps(document))
    return load_settings(file, env, {}, tmp_path).settings


@pytest.mark.scenario("001", "Default configuration matches shell script")
@pytest.mark.scenario("004", "Default configuration matches shell script")
def test_default_configuration_matches_shell_script(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config.max_rounds == 8
    assert config.max_review_cycles == 3
    assert config.poll_seconds == 2
    assert config.min_review_cycles_before_approval == 2
    assert config.review_evidence_min_match == 3


@pytest.mark.scenario("004", "Config file values apply when env vars absent")
def test_config_file_values_apply_when_env_vars_absent(tmp_path: Path) -> None:
    document = {"limits": {"max_rounds": 3}}
    assert loaded(tmp_path, document).max_rounds == 3
    assert loaded(tmp_path, document, MAX_ROUNDS="5").max_rounds == 5


@pytest.mark.scenario("004", "Default start agent is analyst")
def test_default_start_agent_is_analyst(tmp_path: Path) -> None:
    assert loaded(tmp_path).start_agent == "analyst"


@pytest.mark.scenario("004", "Post-processing defaults to disabled")
def test_post_processing_defaults_to_disabled(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config.post_openspec_archive is False
    assert config.post_git_commit is False


@pytest.mark.scenario("004", "Post-processing enabled via env var")
def test_post_processing_enabled_via_env_var(tmp_path: Path) -> None:
    document = {"post_processing": {"openspec_archive": False}}
    assert loaded(tmp_path, document, POST_OPENSPEC_ARCHIVE="1").post_openspec_archive is True
