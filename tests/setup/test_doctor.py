"""`quintet doctor`: what it finds, how bad that is, and the line on how to fix it."""

import fcntl
import json
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from quintet.loop.decide.state import State, Status, TerminalRef
from quintet.loop.record.state_file import save_state
from quintet.providers.registry import find_provider
from quintet.roles import ROLES
from tests.setup.conftest import Desk
from tests.setup.programs import CLAUDE, OPENSPEC, codex
from tests.setup.test_tasks import GOOD


def checks(desk: Desk, *words: str, **env: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    done = desk.quintet("doctor", "--json", *words, **env)
    document = json.loads(done.stdout)
    assert document["can_run"] == (done.exit_code == 0)
    found: dict[str, list[dict[str, Any]]] = {}
    for check in document["checks"]:
        assert check["fix"] or check["level"] == "ok", f"{check} does not say how to fix it"
        assert "\n" not in check["found"] + check["fix"]
        found.setdefault(check["name"], []).append(check)
    return done.exit_code, found


def level(found: dict[str, list[dict[str, Any]]], name: str) -> str:
    (one,) = {check["level"] for check in found[name]}
    return str(one)


def test_a_machine_that_is_ready(desk: Desk) -> None:
    desk.install(codex=codex(), openspec=OPENSPEC)
    desk.quintet("init", "--yes")
    (desk.wd / "t.md").write_text(GOOD)
    code, found = checks(desk, "--prompt-file", "t.md")
    assert code == 0
    assert {check["level"] for ones in found.values() for check in ones} == {"ok"}
    assert {"quintet", "tmux", "git", "codex", "openspec", "settings", "task", "run", "leftovers"} <= found.keys()
    said = desk.quintet("doctor").output
    assert "ok       codex        0.166.0 at " in said
    assert said.endswith("A run can start.\n")


@pytest.mark.parametrize(
    ("programs", "words"),
    [
        ({}, "npm install -g @openai/codex"),
        ({"codex": codex(logged_in=False)}, "log in"),
        ({"codex": "#!/bin/sh\nexit 1\n"}, "--version"),
    ],
)
def test_an_agent_that_cannot_work_is_a_failure(desk: Desk, programs: dict[str, str], words: str) -> None:
    desk.install(**programs)
    code, found = checks(desk)
    assert code == 1
    assert level(found, "codex") == "failure"
    assert words in found["codex"][0]["fix"]
    assert "claude_code" not in found, "the settings do not name it"


def test_claude_code_as_root_is_found_before_a_run_finds_it(desk: Desk) -> None:
    desk.install(claude=CLAUDE)
    key = {"PROVIDER": "claude_code", "ANTHROPIC_API_KEY": "x", "IS_SANDBOX": ""}
    code, found = checks(desk, **key)
    assert code == 1
    refused = found["claude_code"][-1]
    assert (refused["level"], "root/sudo" in refused["found"]) == ("failure", True), refused
    assert "IS_SANDBOX=1" in refused["fix"]
    for fixed in ({"IS_SANDBOX": "1"}, {"PERMISSIONS": "ask"}):
        code, found = checks(desk, **(key | fixed))
        assert (code, level(found, "claude_code")) == (0, "ok")


def test_arguments_that_a_cli_does_not_take_are_a_failure(desk: Desk) -> None:
    desk.install(codex=codex())
    (desk.wd / "quintet.json").write_text(json.dumps({"agents": {"tester": {"args": ["--broken"]}}}))
    code, found = checks(desk)
    assert code == 1
    (refused,) = [check for check in found["codex"] if check["level"] == "failure"]
    assert refused["found"] == "tester: it does not start: error: unexpected argument '--broken' found"
    assert "--broken" in refused["fix"]


@pytest.mark.parametrize(("version", "word"), [("0.167.0", "newer"), ("1.0.0", "newer"), ("0.50.0", "older")])
def test_a_release_that_was_not_tested_is_a_warning(desk: Desk, version: str, word: str) -> None:
    desk.install(codex=codex(version))
    code, found = checks(desk)
    assert (code, level(found, "codex")) == (0, "warning")
    assert f"{word} than the releases that were tested" in found["codex"][0]["found"]


@pytest.mark.parametrize(("name", "file"), [("codex", "codex"), ("claude_code", "claude")])
def test_the_tested_releases_are_those_whose_screens_were_recorded(name: str, file: str) -> None:
    path = Path(__file__).parents[1] / "providers" / "screens" / f"{file}.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        releases = {tuple(map(int, json.loads(line)["version"].split("."))) for line in lines}
    provider = find_provider(name)
    assert provider is not None
    assert provider.tested == tuple(".".join(map(str, one)) for one in (min(releases), max(releases)))


def test_a_model_of_the_users_own_needs_no_login(desk: Desk) -> None:
    desk.install(codex=codex(logged_in=False))
    config = desk.root / "home/.codex/config.toml"
    config.parent.mkdir()
    config.write_text('model_provider = "local"\n[model_providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n')
    assert checks(desk)[0] == 0
    config.write_text(config.read_text() + "requires_openai_auth = true\n")
    assert checks(desk)[0] == 1


def test_claude_codes_login_is_looked_for_where_it_can_be_seen(desk: Desk) -> None:
    desk.install(claude="#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    code, found = checks(desk, "--provider", "claude_code")
    assert (code, level(found, "claude_code")) == (0, "warning")
    assert level(checks(desk, "--provider", "claude_code", ANTHROPIC_API_KEY="x")[1], "claude_code") == "ok"
    (desk.root / "home/.claude").mkdir()
    (desk.root / "home/.claude/.credentials.json").touch()
    assert level(checks(desk, "--provider", "claude_code")[1], "claude_code") == "ok"


def test_without_tmux_no_run_starts(desk: Desk) -> None:
    desk.install(codex=codex())
    (desk.root / "bin/tmux").unlink()
    code, found = checks(desk)
    assert (code, level(found, "tmux")) == (1, "failure")
    assert "apt-get install tmux" in found["tmux"][0]["found"]


def test_bad_settings_are_a_failure(desk: Desk) -> None:
    (desk.wd / "quintet.json").write_text('{"provder": "codex"}')
    code, found = checks(desk)
    assert (code, level(found, "settings")) == (1, "failure")
    assert "did you mean provider?" in found["settings"][0]["found"]


def test_a_profile_a_prompt_and_a_task_that_would_stop_a_run(desk: Desk) -> None:
    desk.install(codex=codex())
    (desk.wd / "texts").mkdir()
    (desk.wd / "texts/analyst.md").write_text("{{nonsense}}")
    (desk.wd / "t.md").write_text("nothing")
    document = {"prompts_dir": "texts", "prompt_file": "t.md", "agents": {"tester": {"profile": "nobody"}}}
    (desk.wd / "quintet.json").write_text(json.dumps(document))
    code, found = checks(desk)
    assert code == 1
    assert [level(found, name) for name in ("profiles", "prompts", "task")] == ["failure"] * 3
    assert len(found["prompts"]) == 3, "one line for each fault"


def test_openspec_without_the_fast_forward_workflow_is_told(desk: Desk) -> None:
    desk.install(codex=codex(), openspec=OPENSPEC)
    assert "not set up" in checks(desk)[1]["openspec"][0]["found"]
    desk.quintet("init", "--openspec")
    (desk.wd / ".agents/skills/openspec-ff-change/SKILL.md").unlink()
    code, found = checks(desk)
    assert (code, level(found, "openspec")) == (0, "warning")
    assert "ff for codex" in found["openspec"][0]["found"]


def test_another_server_has_to_answer_and_then_nothing_else_is_needed_here(desk: Desk) -> None:
    (desk.root / "bin/tmux").unlink()
    code, found = checks(desk, "--api", "http://127.0.0.1:9")
    assert (code, level(found, "server")) == (1, "failure")
    assert "tmux" not in found
    assert "codex" not in found


def saved(desk: Desk, **fields: Any) -> None:
    terminals = {role.name: TerminalRef("0" * 8, "codex") for role in ROLES}
    save_state(State(wd=str(desk.wd), run_id="20260101-000000-abcdef", terminals=terminals, **fields), state_file(desk))


def state_file(desk: Desk) -> Path:
    return desk.wd / ".tmp/quintet-state.json"


def test_the_state_of_the_projects_run(desk: Desk) -> None:
    desk.install(codex=codex())
    assert checks(desk)[1]["run"][0]["found"] == "none yet"
    saved(desk, last_error="no more tokens")
    found = checks(desk)[1]["run"][0]
    assert (found["level"], "unfinished: no more tokens" in found["found"]) == ("warning", True)
    saved(desk, final_status=Status.PASS)
    found = checks(desk)[1]["run"][0]
    assert (found["level"], "ended with PASS" in found["found"]) == ("ok", True)
    assert checks(desk, RESUME="1")[0] == 1, "there is nothing to go on with"
    state_file(desk).write_text("{")
    assert level(checks(desk)[1], "run") == "warning"


def test_a_run_that_is_at_work_keeps_another_from_starting(desk: Desk) -> None:
    desk.install(codex=codex())
    (desk.wd / ".tmp").mkdir()
    (desk.wd / ".tmp/quintet.pid").write_text(f"{os.getpid()}\n")
    assert checks(desk)[0] == 0, "a number of another process is no run"
    descriptor = os.open(desk.wd, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        code, found = checks(desk)
    finally:
        os.close(descriptor)
    assert (code, level(found, "run")) == (1, "failure")
    assert str(os.getpid()) in found["run"][0]["found"]


def test_doctor_leaves_no_trace_in_the_project(desk: Desk) -> None:
    desk.install(codex=codex(), openspec=OPENSPEC)
    before = desk.files()
    desk.quintet("doctor")
    assert desk.files() == before
