"""Where settings come from, and how a mistake in them is told."""

import contextlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.config import TABLE, Loaded, Settings, load_settings, settings_as_json
from quintet.config.kinds import Flag, WholeNumber
from quintet.config.table import CAO_PROVIDERS, OWN_PROVIDERS
from quintet.errors import ConfigError
from quintet.roles import ROLES


def load(
    cwd: Path, document: Any = None, env: dict[str, str] | None = None, flags: dict[str, Any] | None = None
) -> Loaded:
    file = None
    if document is not None:
        file = Path("config.json")
        (cwd / file).write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return load_settings(file, env or {}, flags or {}, cwd)


def refusal(
    cwd: Path, document: Any = None, env: dict[str, str] | None = None, flags: dict[str, Any] | None = None
) -> str:
    with pytest.raises(ConfigError) as caught:
        load(cwd, document, env, flags)
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    return line


DEFAULTS = {
    "api": "", "provider": "codex", "prompt": "", "prompt_file": "", "project_test_cmd": "", "verify_cmd": "",
    "start_agent": "analyst", "limits.max_rounds": 8, "limits.max_review_cycles": 3,
    "limits.min_review_cycles_before_approval": 2, "limits.poll_seconds": 2, "limits.require_review_evidence": True,
    "limits.review_evidence_min_match": 3, "condensation.condense_cross_phase": True,
    "condensation.max_cross_phase_lines": 40, "condensation.condense_upstream_on_repeat": True,
    "condensation.condense_explore_on_repeat": True, "condensation.condense_review_feedback": True,
    "condensation.max_feedback_lines": 30, "condensation.max_test_evidence_lines": 120,
    "handoff.strict_file_handoff": True, "handoff.idle_grace_seconds": 30, "handoff.response_timeout": 1800,
    "handoff.max_file_reminders": 1, "handoff.auto_accept_permissions": False, "handoff.permissions": "unattended",
    "post_processing.openspec_archive": False, "post_processing.git_commit": False,
    "post_processing.git_commit_comment": "",
    "post_processing.push": "", "post_processing.pull_request": "off", "notifications.ntfy_topic": "",
    "notifications.ntfy_url": "https://ntfy.sh",
    "notifications.webhook": "", "notifications.secret_file": "", "notifications.command": "", "notifications.link": "",
    "cleanup_on_exit": False, "resume": None, "limits.max_seconds": 0.0, "limits.max_cost": 0.0,
    "people.approve": [], "people.approve_timeout": 0.0, "people.approve_default": "stop",
    "limits.max_tokens": 0, "prices": None, "limits.max_limit_wait": 21600.0, "handoff.recover_terminals": True,
    "guard.mode": "restore", "guard.protect": [], "guard.allow": [],
    "guard.require_actions": True, "guard.end_strays": True, "guard.red_first": "warn", "guard.verify_first": False,
    "prompts_dir": "", "progress_seconds": 60.0, "workspace.mode": "tree", "workspace.base": "",
    "workspace.branch": "quintet/{slug}", "workspace.dir": "", "workspace.include": [], "workspace.setup": "",
    "workspace.with_changes": False, "sandbox.mode": "off", "sandbox.write": [], "sandbox.hide": [],
    "sandbox.show": [], "sandbox.env": [], "sandbox.network": "keep",
    "sandbox.domains": [], "sandbox.check_domains": [], "queue.url": "", "queue.lease": 120.0, "queue.accounts": None,
    "queue.checkpoints": True, "queue.push_failed": False, "queue.max_tokens": 0, "queue.max_cost": 0.0,
}  # fmt: skip
VARIABLES = {
    "API", "PROVIDER", "WD", "PROMPT", "PROMPT_FILE", "PROJECT_TEST_CMD", "VERIFY_CMD", "START_AGENT", "MAX_ROUNDS",
    "MAX_REVIEW_CYCLES", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL", "POLL_SECONDS", "REQUIRE_REVIEW_EVIDENCE",
    "REVIEW_EVIDENCE_MIN_MATCH", "CONDENSE_CROSS_PHASE", "MAX_CROSS_PHASE_LINES", "CONDENSE_UPSTREAM_ON_REPEAT",
    "CONDENSE_EXPLORE_ON_REPEAT", "CONDENSE_REVIEW_FEEDBACK", "MAX_FEEDBACK_LINES", "MAX_TEST_EVIDENCE_LINES",
    "STRICT_FILE_HANDOFF", "IDLE_GRACE_SECONDS", "RESPONSE_TIMEOUT", "MAX_FILE_REMINDERS", "AUTO_ACCEPT_PERMISSIONS",
    "POST_OPENSPEC_ARCHIVE", "POST_GIT_COMMIT", "POST_GIT_COMMIT_COMMENT", "POST_PUSH", "POST_PR",
    "NTFY_TOPIC", "NTFY_URL",
    "NOTIFY_WEBHOOK", "NOTIFY_SECRET_FILE", "NOTIFY_CMD", "NOTIFY_LINK", "MAX_SECONDS", "MAX_COST", "APPROVE",
    "APPROVE_TIMEOUT", "APPROVE_DEFAULT",
    "GUARD", "PROTECT", "GUARD_ALLOW",
    "REQUIRE_ACTIONS", "CLEANUP_ON_EXIT", "RESUME", "STATE_FILE", "MAX_TOKENS", "PRICES", "RECOVER_TERMINALS",
    "MAX_LIMIT_WAIT", "PROMPTS_DIR", "PERMISSIONS", "PROGRESS_SECONDS", "RED_FIRST", "VERIFY_FIRST", "END_STRAYS",
    "WORKSPACE", "WORKSPACE_BASE", "WORKSPACE_BRANCH", "WORKSPACE_DIR", "WORKSPACE_INCLUDE", "WORKSPACE_SETUP",
    "WITH_CHANGES", "SANDBOX", "SANDBOX_WRITE", "SANDBOX_HIDE", "SANDBOX_SHOW", "SANDBOX_ENV", "SANDBOX_NETWORK",
    "SANDBOX_DOMAINS", "SANDBOX_CHECK_DOMAINS",
    "QUEUE", "QUEUE_LEASE", "QUEUE_ACCOUNTS", "QUEUE_CHECKPOINTS", "QUEUE_PUSH_FAILED", "QUEUE_MAX_TOKENS",
    "QUEUE_MAX_COST",
}  # fmt: skip


@pytest.mark.scenario("001", "Default configuration matches shell script")
@pytest.mark.scenario("004", "Default configuration matches shell script")
@pytest.mark.scenario("004", "Default start agent is analyst")
@pytest.mark.scenario("004", "Post-processing defaults to disabled")
def test_the_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    values = settings_as_json(loaded.settings)
    assert {key: values[key] for key in DEFAULTS} == DEFAULTS
    assert values["wd"] == str(tmp_path)
    assert values["state_file"] == str(tmp_path / ".tmp" / "quintet-state.json")
    assert set(loaded.origin.values()) == {"default"}
    assert loaded.origin.keys() == values.keys()
    profiles = [values[f"agents.{role}.profile"] for role in ROLES]
    assert profiles == ["system_analyst", "peer_system_analyst", "programmer", "peer_programmer", "tester"]
    assert {values[f"agents.{role}.provider"] for role in ROLES} == {"codex"}


def test_the_table_is_whole() -> None:
    assert {row.env for row in TABLE} == VARIABLES
    assert {row.key for row in TABLE} == {*DEFAULTS, "wd", "state_file"}
    assert {row.name for row in TABLE} | {"agents", "chosen", "providers"} == {item.name for item in fields(Settings)}
    assert all(row.meaning for row in TABLE)


def nested(key: str, value: Any) -> dict[str, Any]:
    section, _, inner = key.partition(".")
    return {section: {inner: value}} if inner else {key: value}


SAMPLES = {
    "api": ("http://a", "http://b", "http://c"), "provider": ("codex", "scripted", "claude_code"),
    "start_agent": ("tester", "programmer", "peer_analyst"), "notifications.ntfy_url": ("http://a", "http://b", "http://c"),
    "notifications.webhook": ("http://a", "http://b", "http://c"),
    "notifications.link": ("http://a", "http://b", "http://c"),
    "guard.mode": ("restore", "report", "off"), "guard.red_first": ("stop", "off", "warn"),
    "sandbox.mode": ("on", "off", "on"), "sandbox.network": ("none", "allow", "none"),
    "sandbox.domains": ("a.example", "*.b.example", ["c.example:8443"]),
    "sandbox.check_domains": ("127.0.0.1:8080", "[::1]:8080", ["localhost:1"]),
    "sandbox.env": ("A_*", "B,C", ["D"]),
    "workspace.mode": ("worktree", "tree", "worktree"),
    "handoff.permissions": ("unattended", "ask", "unattended"),
    "post_processing.pull_request": ("draft", "ready", "draft"),
    "people.approve": ("spec", "result", ["spec", "result"]), "people.approve_default": ("reject", "approve", "stop"),
    "limits.max_cost": ("1", "2", 3.0),
    "queue.url": ("postgresql://a/b", "sqlite:////c.db", "postgresql://d/e"), "queue.lease": ("9", "8", 7.0),
    "queue.accounts": ("{}", '{"b": 2}', {"c": 3}), "queue.max_cost": ("1", "2.5", 3.0),
    "prices": ("{}", '{"b": {"input": 1, "output": 2}}', {"c": {"input": 1, "output": 2}}),
}  # fmt: skip


@pytest.mark.scenario("004", "Config file values apply when env vars absent")
@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.name not in {"wd", "prompt_file", "resume"}], ids=lambda row: row.env
)
def test_every_setting_takes_effect_from_every_source_in_order(row: Any, tmp_path: Path) -> None:
    if isinstance(row.kind, Flag):
        flag, env, file = True, "off", True
    elif isinstance(row.kind, WholeNumber):
        flag, env, file = "1", "2", 3  # type: ignore[assignment]
    elif row.key in SAMPLES:
        flag, env, file = SAMPLES[row.key]  # type: ignore[assignment]
    else:
        flag, env, file = "1", "2", 3.0 if "second" in row.env.lower() or "TIMEOUT" in row.env else "3"  # type: ignore[assignment]
    document = nested(row.key, file)

    def effective(**sources: Any) -> tuple[Any, str]:
        loaded = load(tmp_path, **sources)
        return getattr(loaded.settings, row.name), loaded.origin[row.key]

    expected = [row.kind.read(raw) for raw in (flag, env, file)]
    if row.name == "state_file":
        expected = [tmp_path / value for value in expected]
    if row.name in ("prompts_dir", "workspace_dir"):
        expected = [str(tmp_path / value) for value in expected]
    in_env, by_flag = {row.env: env}, {row.name: flag}
    assert effective(document=document, env=in_env, flags=by_flag) == (expected[0], row.flag)
    assert effective(document=document, env=in_env) == (expected[1], row.env)
    assert effective(document=document) == (expected[2], f"{row.key} in config.json")
    assert effective(document=document, env={row.env: ""}) == (expected[2], f"{row.key} in config.json")


@pytest.mark.scenario("004", "Post-processing enabled via env var")
@pytest.mark.parametrize("raw", ["1", "true", "YES", "On"])
def test_a_boolean_variable_in_any_spelling(raw: str, tmp_path: Path) -> None:
    env = {"REQUIRE_REVIEW_EVIDENCE": raw, "POST_GIT_COMMIT": raw, "RESUME": raw}
    settings = load(tmp_path, {"limits": {"require_review_evidence": False}}, env).settings
    assert settings.require_review_evidence is settings.post_git_commit is settings.resume is True


@pytest.mark.parametrize("raw", ["0", "false", "NO", "Off", False, 0])
def test_false_is_false_in_json_too(raw: Any, tmp_path: Path) -> None:
    document = {"limits": {"require_review_evidence": raw}, "resume": raw}
    settings = load(tmp_path, document).settings
    assert settings.require_review_evidence is False
    assert settings.resume is False


def test_fractions_of_a_second_are_allowed(tmp_path: Path) -> None:
    assert load(tmp_path, env={"POLL_SECONDS": "0.5"}).settings.poll_seconds == 0.5
    assert load(tmp_path, {"limits": {"poll_seconds": 0.25}}).settings.poll_seconds == 0.25


@pytest.mark.parametrize(
    ("document", "key", "found", "allowed"),
    [
        ({"limits": {"max_rounds": 0}}, "limits.max_rounds", "0", "from 1"),
        ({"limits": {"max_rounds": "many"}}, "limits.max_rounds", '"many"', "whole number"),
        ({"limits": {"max_rounds": None}}, "limits.max_rounds", "null", "whole number"),
        ({"limits": {"max_rounds": 2.5}}, "limits.max_rounds", "2.5", "whole number"),
        ({"limits": {"max_rounds": True}}, "limits.max_rounds", "true", "whole number"),
        ({"limits": {"max_rounds": [3]}}, "limits.max_rounds", "[3]", "whole number"),
        ({"limits": {"max_rounds": 10**30}}, "limits.max_rounds", "1000000", "to 1000000"),
        ('{"limits": {"max_rounds": NaN}}', "limits.max_rounds", "NaN", "whole number"),
        ('{"limits": {"poll_seconds": 1e999}}', "limits.poll_seconds", "Infinity", "seconds"),
        ({"limits": {"max_review_cycles": 0}}, "limits.max_review_cycles", "0", "from 1"),
        ({"limits": {"poll_seconds": -1}}, "limits.poll_seconds", "-1", "seconds"),
        ({"limits": {"review_evidence_min_match": 5}}, "limits.review_evidence_min_match", "5", "from 0 to 4"),
        ({"handoff": {"response_timeout": 0}}, "handoff.response_timeout", "0", "seconds"),
        ({"handoff": {"idle_grace_seconds": -0.5}}, "handoff.idle_grace_seconds", "-0.5", "seconds"),
        ({"cleanup_on_exit": "maybe"}, "cleanup_on_exit", '"maybe"', "true or false"),
        ({"resume": 2}, "resume", "2", "true or false"),
        ({"prompt": 3}, "prompt", "3", "a text"),
        ({"prompt": {}}, "prompt", "{}", "a text"),
        ({"wd": ""}, "wd", '""', "folder"),
        ({"wd": "nowhere"}, "wd", "nowhere", "existing folder"),
        ({"api": "localhost:1"}, "api", '"localhost:1"', "http://"),
        ({"limits": None}, "limits", "null", "an object"),
        ({"limits": []}, "limits", "[]", "an object"),
        ({"agents": None}, "agents", "null", "an object"),
        ({"agents": ["x"]}, "agents", '["x"]', "an object"),
        ({"agents": {"tester": None}}, "agents.tester", "null", "an object"),
        ({"agents": {"tester": {"args": "-x"}}}, "agents.tester.args", '"-x"', "a list of texts"),
        ({"agents": {"tester": {"profile": ""}}}, "agents.tester.profile", '""', "a profile's name"),
        ({"agents": {"tester": {"model": 3}}}, "agents.tester.model", "3", "a model's name"),
        ({"agents": {"tester": {"provider": None}}}, "agents.tester.provider", "null", "codex"),
    ],
)
def test_a_bad_value_names_key_found_and_allowed(
    document: Any, key: str, found: str, allowed: str, tmp_path: Path
) -> None:
    line = refusal(tmp_path, document)
    assert line.startswith(f"{key} in config.json: found ")
    assert found in line.partition("allowed:")[0]
    assert allowed in line.partition("allowed:")[2]


@pytest.mark.parametrize(
    ("document", "key", "near"),
    [
        ({"max_rounds": 3}, "max_rounds", None),
        ({"limit": {}}, "limit", "limits"),
        ({"limits": {"max_round": 3}}, "limits.max_round", "limits.max_rounds"),
        ({"limits": {"MAX_ROUNDS": 3}}, "limits.MAX_ROUNDS", "limits.max_rounds"),
        ({"limits.max_rounds": 3}, "limits.max_rounds", "limits"),
        (
            {"condensation": {"max_feedback_line": 3}},
            "condensation.max_feedback_line",
            "condensation.max_feedback_lines",
        ),
        ({"agents": {"analist": {}}}, "agents.analist", "agents.analyst"),
        ({"agents": {"tester": {"providr": "codex"}}}, "agents.tester.providr", "agents.tester.provider"),
        ({"promt": "x"}, "promt", "prompt"),
        ({"": 1}, "", None),
    ],
)
def test_an_unknown_key_at_any_depth_names_the_nearest(
    document: Any, key: str, near: str | None, tmp_path: Path
) -> None:
    line = refusal(tmp_path, document)
    assert line.startswith(f'unknown key "{key}" in config.json; allowed: ')
    if near:
        assert line.endswith(f"; did you mean {near}?")


def test_a_strange_key_is_still_one_line(tmp_path: Path) -> None:
    assert r'"a\nb"' in refusal(tmp_path, {"a\nb": 1})
    assert len(refusal(tmp_path, {"x" * 10_000: 1})) < 500
    assert len(refusal(tmp_path, {"prompt": ["x" * 10_000]})) < 200
    assert r'"a\nb" appears twice' in refusal(tmp_path, '{"a\\nb": 1, "a\\nb": 2}')


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"{'a': 1}", "is not JSON"),
        (b'{"prompt": "a", "prompt": "b"}', '"prompt" appears twice'),
        (b'{"limits": {"max_rounds": 1, "max_rounds": 2}}', '"max_rounds" appears twice'),
        (b"[1]", "found [1], allowed: a JSON object"),
        (b"null", "found null, allowed: a JSON object"),
        (b"3", "found 3, allowed: a JSON object"),
        ('{"prompt": "x"}'.encode("utf-16"), "not UTF-8"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"prompt": ' + b"9" * 5000 + b"}", "is not JSON"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_a_file_that_is_no_config_is_named(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_settings(Path("bad.json"), {}, {}, tmp_path)
    assert str(caught.value).startswith(f"config file {tmp_path / 'bad.json'}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("depth", range(300, 1000, 50))
def test_a_deep_value_is_an_error_at_any_depth(depth: int, tmp_path: Path) -> None:
    refusal(tmp_path, '{"prompt": ' + "[" * depth + "]" * depth + "}")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: cannot be read \(No such file"):
        load_settings(Path("none.json"), {}, {}, tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        load_settings(Path(), {}, {}, tmp_path)


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + b'{"limits": {"max_rounds": 5}}')
    assert load_settings(Path("bom.json"), {}, {}, tmp_path).settings.max_rounds == 5


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"limits": {"max_rounds": 5}}, dict.fromkeys(VARIABLES, ""))
    assert loaded.settings.max_rounds == 5
    assert loaded.settings.require_review_evidence is True
    assert loaded.settings.resume is None


@pytest.mark.parametrize(
    ("env", "name", "hint"),
    [
        ({"MAX_ROUNDS": "x"}, "MAX_ROUNDS", ""),
        ({"REQUIRE_REVIEW_EVIDENCE": "ja"}, "REQUIRE_REVIEW_EVIDENCE", ""),
        ({"START_AGENT": "testr"}, "START_AGENT", "did you mean tester?"),
        ({"START_AGENT": "Analyst"}, "START_AGENT", "did you mean analyst?"),
        ({"PROVIDER": "claude"}, "PROVIDER", "did you mean claude_code?"),
        ({"PROVIDER": "grok_cli"}, "PROVIDER", ""),
        ({"MAX_REVIEW_CYCLES": "0"}, "MAX_REVIEW_CYCLES", ""),
        ({"POLL_SECONDS": "-1"}, "POLL_SECONDS", ""),
    ],
)
def test_a_bad_variable_is_named(env: dict[str, str], name: str, hint: str, tmp_path: Path) -> None:
    line = refusal(tmp_path, env=env)
    assert line.startswith(f'{name}: found "{env[name]}", allowed: ')
    assert line.endswith(hint)


def test_a_bad_flag_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path, flags={"max_rounds": "0"}).startswith('--max-rounds: found "0", allowed: ')


@pytest.mark.parametrize("key", ["limits.max_rounds", "prompt", "provider"])
def test_a_bad_value_shows_even_where_another_hides_it(key: str, tmp_path: Path) -> None:
    env = {"MAX_ROUNDS": "3", "PROMPT": "x", "PROVIDER": "codex"}
    assert refusal(tmp_path, nested(key, []), env).startswith(f"{key} in config.json")


@pytest.mark.parametrize("provider", CAO_PROVIDERS)
def test_other_providers_need_another_server(provider: str, tmp_path: Path) -> None:
    document = {"provider": provider, "agents": {"tester": {"provider": provider}}}
    with_api = {**document, "api": "http://localhost:9889"}
    assert load(tmp_path, with_api).settings.agents["tester"].provider == provider
    assert load(tmp_path, document, {"API": "http://h"}).settings.provider == provider
    assert f"allowed: {', '.join(OWN_PROVIDERS)}" in refusal(tmp_path, document)
    assert f"allowed: {', '.join(OWN_PROVIDERS)}" in refusal(tmp_path, {"agents": document["agents"]})


def test_the_providers_of_cao_are_known() -> None:
    named = {"kiro_cli", "q_cli", "copilot_cli", "opencode_cli", "cursor_cli", "kimi_cli", "grok_cli", "gemini_cli"}
    assert named <= {*CAO_PROVIDERS, *OWN_PROVIDERS}
    assert not set(CAO_PROVIDERS) & set(OWN_PROVIDERS)


def test_an_unknown_provider_is_an_error_with_any_server(tmp_path: Path) -> None:
    line = refusal(tmp_path, {"api": "http://h", "provider": "kiro_cly"})
    assert line.endswith("did you mean kiro_cli?")


def test_agents_inherit_what_they_do_not_name(tmp_path: Path) -> None:
    agents = {"tester": {"provider": "scripted", "model": "m", "args": ["-x"]}, "programmer": {"profile": "mine"}}
    loaded = load(tmp_path, {"provider": "claude_code", "agents": agents})
    tester, programmer = loaded.settings.agents["tester"], loaded.settings.agents["programmer"]
    assert (tester.provider, tester.profile, tester.model, tester.args) == ("scripted", "tester", "m", ("-x",))
    assert (programmer.provider, programmer.profile) == ("claude_code", "mine")
    assert loaded.origin["agents.tester.provider"] == "agents.tester.provider in config.json"
    assert loaded.origin["agents.programmer.provider"] == "provider in config.json"
    assert loaded.origin["agents.programmer.model"] == "default"


@pytest.fixture
def task_files(tmp_path: Path) -> Path:
    for name in ("flag", "env", "json"):
        (tmp_path / f"{name}.md").write_text(f"file of {name}", encoding="utf-8-sig")
    return tmp_path


@pytest.mark.parametrize(
    ("sources", "prompt", "origin"),
    [
        (({"prompt": "F"}, {"PROMPT_FILE": "env.md"}, {"prompt_file": "json.md"}), "F", "--prompt"),
        (({"prompt": "F", "prompt_file": "flag.md"}, {"PROMPT": "E"}, {}), "file of flag", "--prompt-file"),
        (({}, {"PROMPT": "E"}, {"prompt_file": "json.md"}), "E", "PROMPT"),
        (({}, {"PROMPT": "E", "PROMPT_FILE": "env.md"}, {}), "file of env", "PROMPT_FILE"),
        (({}, {"PROMPT": "", "PROMPT_FILE": ""}, {"prompt": "J"}), "J", "prompt in config.json"),
        (({}, {}, {"prompt": "J", "prompt_file": "json.md"}), "file of json", "prompt_file in config.json"),
        (({}, {}, {"prompt": "J", "prompt_file": ""}), "J", "prompt in config.json"),
        (({}, {"PROMPT": "E"}, {"prompt_file": "missing.md"}), "E", "PROMPT"),
        (({}, {}, {"prompt": "", "prompt_file": ""}), "", "default"),
        (({}, {}, {}), "", "default"),
    ],
)
def test_the_higher_source_of_a_prompt_wins_and_within_one_the_file(
    sources: tuple[Any, Any, Any], prompt: str, origin: str, task_files: Path
) -> None:
    flags, env, document = sources
    loaded = load(task_files, document, env, flags)
    assert loaded.settings.prompt == prompt
    assert loaded.origin["prompt"] == origin
    assert bool(loaded.settings.prompt_file) == prompt.startswith("file of")


def test_a_task_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path, {"prompt_file": "no.md"})
        == f"task file {tmp_path}/no.md: cannot be read (No such file or directory)"
    )
    assert "Is a directory" in refusal(tmp_path, {"prompt_file": "."})
    (tmp_path / "latin.md").write_bytes(b"\xe4")
    assert "not UTF-8" in refusal(tmp_path, {"prompt_file": "latin.md"})


def test_the_working_directory_is_made_absolute(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    settings = load(tmp_path, {"wd": "a b"}).settings
    assert settings.wd == tmp_path / "a b"
    assert settings.state_file == tmp_path / "a b" / ".tmp" / "quintet-state.json"
    assert load(tmp_path, env={"WD": str(tmp_path / "a b")}).settings.wd.is_absolute()
    (tmp_path / "file").touch()
    for wd in ("file", "x" * 300):
        assert "existing folder" in refusal(tmp_path, env={"WD": wd})
    (tmp_path / "loop").symlink_to("loop")
    assert "existing folder" in refusal(tmp_path, env={"WD": "loop"})


@pytest.mark.parametrize(
    ("env", "count"), [({}, 0), ({"MAX_REVIEW_CYCLES": "1"}, 1), ({"MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "4"}, 1)]
)
def test_a_minimum_above_the_maximum_is_a_warning(env: dict[str, str], count: int, tmp_path: Path) -> None:
    assert len(load(tmp_path, env=env).warnings) == count


def test_two_loads_know_nothing_of_each_other(tmp_path: Path) -> None:
    assert load(tmp_path, env={"MAX_ROUNDS": "3"}).settings.max_rounds == 3
    assert load(tmp_path).settings.max_rounds == 8


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
known = st.sampled_from([row.key for row in TABLE] + ["agents.tester.provider", "agents.tester.args"])


@given(known, junk, known, junk)
def test_any_document_is_settings_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, first: str, value: Any, second: str, other: Any
) -> None:
    cwd = tmp_path_factory.getbasetemp()
    document: dict[str, Any] = {}
    for key, item in ((first, value), (second, other)):
        *sections, name = key.split(".")
        inner = document
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = item
    with contextlib.suppress(ConfigError):
        loaded = load(cwd, document)
        assert loaded.origin.keys() == settings_as_json(loaded.settings).keys()
        return
    refusal(cwd, document)


@pytest.mark.parametrize("key", ["wd", "prompt_file", "state_file", "verify_cmd", "api"])
def test_half_a_character_is_no_text(tmp_path: Path, key: str) -> None:
    """JSON can write it, no file name and no command can hold it."""
    assert key in refusal(tmp_path, {key: "a\ud800b"})
    assert "agents.tester.args" in refusal(tmp_path, {"agents": {"tester": {"args": ["\ud800"]}}})


def test_a_name_of_several_lines_is_told_in_one(tmp_path: Path) -> None:
    assert "task\\n.md: cannot be read" in refusal(tmp_path, flags={"prompt_file": "task\n.md"})
    with pytest.raises(ConfigError, match=r"config file .*a\\u2028b\.json: cannot be read") as caught:
        load_settings(Path("a\u2028b.json"), {}, {}, tmp_path)
    assert len(str(caught.value).splitlines()) == 1
