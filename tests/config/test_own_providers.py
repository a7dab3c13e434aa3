"""Agents that the user defines: `providers` in the config file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from quintet.config import load_settings, settings_as_json
from quintet.config.load import Kept, Loaded, settings_to_keep
from quintet.config.table import OwnProvider
from quintet.errors import ConfigError

MINE: dict[str, Any] = {"command": ["my-agent", "acp"], "env": {"KEY": "s3cret"}}


def load(cwd: Path, document: dict[str, Any], env: dict[str, str] | None = None) -> Loaded:
    (cwd / "c.json").write_text(json.dumps(document), encoding="utf-8")
    return load_settings(Path("c.json"), env or {}, {}, cwd)


def refusal(cwd: Path, document: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(cwd, document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_role_and_all_roles_can_have_an_agent_of_the_users(tmp_path: Path) -> None:
    own = {"providers": {"my-agent": MINE, "other": {"command": ["x"], "mode": "free", "model": "m1"}}}
    settings = load(tmp_path, {**own, "agents": {"tester": {"provider": "my-agent"}}}).settings
    assert settings.agents["tester"].provider == "my-agent"
    assert settings.agents["analyst"].provider == "codex"
    assert settings.providers["my-agent"] == OwnProvider(("my-agent", "acp"), {"KEY": "s3cret"})
    assert settings.providers["other"] == OwnProvider(("x",), {}, "free", "m1")
    assert load(tmp_path, own, {"PROVIDER": "other"}).settings.agents["tester"].provider == "other"


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"providers": {"codex": MINE}}, "providers.codex in c.json: the name is taken"),
        ({"providers": {"goose": MINE}}, "providers.goose in c.json: the name is taken"),
        ({"providers": {"a b": MINE}}, 'providers.a b in c.json: found "a b", allowed: a name of letters'),
        ({"providers": {"mine": {}}}, "providers.mine in c.json: has no command; allowed: a list such as"),
        ({"providers": {"mine": {"command": []}}}, "providers.mine.command in c.json: found [], allowed: a list"),
        ({"providers": {"mine": {"command": "x acp"}}}, 'providers.mine.command in c.json: found "x acp", allowed'),
        ({"providers": {"mine": {"command": [""]}}}, 'providers.mine.command in c.json: found [""], allowed'),
        ({"providers": {"mine": MINE | {"enviroment": {}}}}, 'unknown key "providers.mine.enviroment" in c.json'),
        ({"providers": {"mine": MINE | {"env": {"A-B": "x"}}}}, "providers.mine.env in c.json: found"),
        ({"providers": {"mine": MINE | {"instructions": "file"}}}, "providers.mine.instructions in c.json: found"),
        ({"providers": []}, "providers in c.json: found [], allowed: an object"),
        ({"providers": {"mine": 3}}, "providers.mine in c.json: found 3, allowed: an object"),
        (
            {"providers": {"mine": MINE}, "agents": {"tester": {"provider": "mime"}}},
            'agents.tester.provider in c.json: found "mime", allowed: ',
        ),
    ],
)
def test_each_mistake_is_one_line(document: dict[str, Any], line: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, document).startswith(line)


def test_an_unknown_name_has_the_nearest_of_the_users_own(tmp_path: Path) -> None:
    document = {"providers": {"my-agent": MINE}, "agents": {"tester": {"provider": "my_agent"}}}
    assert refusal(tmp_path, document).endswith("did you mean my-agent?")


def test_a_value_of_a_variable_is_in_no_message(tmp_path: Path) -> None:
    bad = {"providers": {"mine": {"command": ["x"], "env": {"KEY": "s3cret", "B-": "s3cret"}}}}
    assert "s3cret" not in refusal(tmp_path, bad)
    assert "s3cret" not in refusal(tmp_path, {"providers": {"mine": {"command": ["x"], "env": "s3cret"}}})


def test_the_settings_show_the_names_of_variables_only(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"providers": {"mine": MINE}})
    shown = settings_as_json(loaded.settings)
    assert shown["providers.mine.env"] == ["KEY"]
    assert shown["providers.mine.command"] == ["my-agent", "acp"]
    assert "s3cret" not in json.dumps(shown)
    assert loaded.origin["providers.mine.command"] == "providers.mine.command in c.json"
    assert loaded.origin["providers.mine.mode"] == "default"


def test_what_is_kept_gives_the_same_agents_again(tmp_path: Path) -> None:
    document = {"providers": {"mine": MINE}, "agents": {"tester": {"provider": "mine"}}}
    loaded = load(tmp_path, document)
    kept = Kept(**json.loads(json.dumps(asdict(settings_to_keep(loaded)))))
    (tmp_path / "c.json").write_text("{}", encoding="utf-8")
    again = load_settings(Path("c.json"), {}, {}, tmp_path, kept).settings
    assert again.providers == loaded.settings.providers
    assert again.agents == loaded.settings.agents
