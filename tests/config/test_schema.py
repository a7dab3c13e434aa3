"""The JSON schema of the settings: it knows every setting, and allows what the loader takes."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from quintet.config import TABLE, load_settings
from quintet.config.schema import json_schema
from quintet.errors import ConfigError
from quintet.roles import ROLES

SCHEMA = json_schema()
CHECK = jsonschema_rs.validator_for(SCHEMA)


def taken(document: dict[str, Any], folder: Path) -> bool:
    (folder / "c.json").write_text(json.dumps(document), encoding="utf-8")
    try:
        load_settings(Path("c.json"), {}, {}, folder)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.key)
def test_every_setting_is_in_it_with_its_meaning(row: Any) -> None:
    place = SCHEMA["properties"]
    for part in row.key.split("."):
        found = place[part]
        place = found.get("properties", {})
    assert row.meaning in found["description"]
    assert row.env in found["description"]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"$schema": "./.quintet/schema.json", "provider": "scripted"},
        {"limits": {"max_rounds": 3, "poll_seconds": 0.5, "require_review_evidence": False}},
        {"agents": {role.name: {"provider": "codex", "model": "m", "args": ["-x"]} for role in ROLES}},
        {"prices": {"codex": {"input": 1, "output": 2.5}}},
        {"guard": {"mode": "report", "protect": ["tests/**"], "allow": ["a/b*"]}},
        {"prompts_dir": "texts", "resume": False},
        {"provider": "gemini_cli"},
        {"providers": {"mine": {"command": ["a"], "env": {"K": "v"}}}, "agents": {"tester": {"provider": "mine"}}},
        {"providers": {"m.1": {"command": ["a"], "mode": "x", "model": "m", "instructions": "system prompt"}}},
        {"providers": {"mine": {"command": ["a"], "install": "make"}}, "provider": "mine"},
    ],
)
def test_both_take_what_is_right(document: dict[str, Any], tmp_path: Path) -> None:
    assert CHECK.is_valid(document)
    assert taken(document, tmp_path)


@pytest.mark.parametrize(
    "document",
    [
        {"provder": "codex"},
        {"provider": "codx"},
        {"limits": {"max_round": 3}},
        {"limits": {"max_rounds": 0}},
        {"guard": {"protect": ["/etc"]}},
        {"guard": {"allow": ["a", "../b"]}},
        {"limits": {"poll_seconds": -1}},
        {"limits": []},
        {"agents": {"nobody": {}}},
        {"agents": {"tester": {"args": "x"}}},
        {"agents": {"tester": {"provider": "mine"}}},
        {"providers": {"codex": {"command": ["a"]}}},
        {"providers": {"mine": {}}},
        {"providers": {"mine": {"command": []}}},
        {"providers": {"mine": {"command": "a"}}},
        {"providers": {"mine": {"command": ["a"], "flags": []}}},
        {"providers": {"mine": {"command": ["a"], "env": {"1": "x"}}}},
        {"providers": {"mine": {"command": ["a"], "env": {"A": 1}}}},
        {"providers": {"mine": {"command": ["a"], "instructions": "words"}}},
        {"providers": {"a b": {"command": ["a"]}}},
        {"prices": {"codex": {"input": 1}}},
        {"cleanup_on_exit": "maybe"},
        {"$schema": 3},
        {"wd": ""},
    ],
)
def test_both_refuse_what_is_wrong(document: dict[str, Any], tmp_path: Path) -> None:
    assert not CHECK.is_valid(document)
    assert not taken(document, tmp_path)
