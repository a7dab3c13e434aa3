"""How Codex is started, what it asks at first, and how a message is typed."""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.errors import ServerError
from quintet.providers.base import Dialog, Launch, LaunchPlan
from quintet.providers.codex.launch import sets_permissions, take_instructions, toml
from quintet.providers.codex.provider import INVISIBLE, PROVIDER
from quintet.providers.codex.rollouts import mark
from quintet.providers.screen import Screen

HELP_0_166 = "  --no-alt-screen\n  --no-daemon\n      --dangerously-bypass-approvals-and-sandbox\n"
HELP_0_104 = "  --no-alt-screen\n"
UNATTENDED = "--dangerously-bypass-approvals-and-sandbox"
Start = Callable[..., LaunchPlan]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Plans a start with a `codex` that knows what its help says, and notes how it was called."""

    def plan(help_text: str = HELP_0_166, env: dict[str, str] | None = None, **more: Any) -> LaunchPlan:
        program = tmp_path / "bin/codex"
        program.parent.mkdir(exist_ok=True)
        text = f"#!/bin/sh\necho \"$@\" >> {tmp_path}/calls\ncat <<'END'\n{help_text}END\n"
        if not program.exists() or program.read_text() != text:
            program.write_text(text)
            program.chmod(0o755)
        given_env = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), **(env or {})}
        told = {"profile": "programmer", "instructions": "You are a programmer.", **more}
        return PROVIDER.launch(
            Launch("0a1b2c3d", folder=tmp_path / "t", cwd=tmp_path / "my project", env=given_env, **told)
        )

    return plan


def settings(plan: LaunchPlan) -> dict[str, Any]:
    pairs = zip(plan.argv, plan.argv[1:], strict=False)
    return tomllib.loads("\n".join(value for option, value in pairs if option == "-c"))


@pytest.mark.slow
def test_codex_starts_unattended_with_its_profile(start: Start, tmp_path: Path) -> None:
    plan = start(model="gpt-5", args=("--search",))
    assert plan.argv[0] == str(tmp_path / "bin/codex")
    assert {UNATTENDED, "--no-daemon", "--no-alt-screen"} <= set(plan.argv)
    assert plan.argv[plan.argv.index("--model") + 1] == "gpt-5"
    assert plan.argv[-1] == "--search"
    found = settings(plan)
    assert found["developer_instructions"] == f"You are a programmer.\n\n{mark('0a1b2c3d')}"
    assert found["check_for_update_on_startup"] is False
    assert found["projects"] == {str(tmp_path / "my project"): {"trust_level": "trusted"}}
    assert json.loads(plan.files["codex.json"])["home"] == str(tmp_path / ".codex")


@pytest.mark.slow
def test_an_option_that_the_release_does_not_know_is_left_out(start: Start) -> None:
    assert "--no-daemon" not in start(HELP_0_104).argv
    assert "--no-alt-screen" in start(HELP_0_104).argv


@pytest.mark.slow
def test_asking_instead(start: Start) -> None:
    assert UNATTENDED not in start(asks=True).argv
    assert UNATTENDED not in start(args=("--sandbox", "workspace-write")).argv


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-s", "read-only"], True), (["-a", "never"], True), (["--sandbox=read-only"], True), (["--full-auto"], True),
        (["-c", "approval_policy=never"], True), (["-c", 'sandbox_mode = "read-only"'], True), (["--search"], False),
        (["--add-dir", "/sandbox"], False), (["-c", "model=x"], False), ([], False),
    ],
)  # fmt: skip
def test_the_users_own_permissions_count(args: list[str], expected: bool) -> None:
    assert sets_permissions(args) is expected


@pytest.mark.slow
def test_the_users_own_instructions_stay(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text('developer_instructions = "Be brief."\n')
    assert settings(start())["developer_instructions"].startswith("Be brief.\n\nYou are a programmer.")
    (tmp_path / ".codex/config.toml").write_text("no = toml = at all")
    assert settings(start())["developer_instructions"].startswith("You are a programmer.")


@pytest.mark.parametrize(
    ("args", "kept", "found"),
    [
        (["-c", 'developer_instructions="Be \\"brief\\"."'], [], 'Be "brief".'),
        (["--config", "developer_instructions=Be brief."], [], "Be brief."),
        (["--config=developer_instructions = 'x'", "--search"], ["--search"], "x"),
        (["-cdeveloper_instructions=x", "-c", "model=y"], ["-c", "model=y"], "x"),
        (["-c", "developer_instructions=x", "-c", "developer_instructions=y"], [], "y"),
        (["-c", "my_developer_instructions=x"], ["-c", "my_developer_instructions=x"], None),
        (["--config-file", "developer_instructions=x"], ["--config-file", "developer_instructions=x"], None),
        (["--search", "-c"], ["--search", "-c"], None),
        ([], [], None),
    ],
)
def test_the_users_own_instructions_among_the_arguments(args: list[str], kept: list[str], found: str | None) -> None:
    assert take_instructions(args) == (kept, found)


@pytest.mark.slow
def test_with_instructions_among_the_arguments_the_record_is_found_still(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text('developer_instructions = "Be long."\n')
    plan = start(args=("-c", 'developer_instructions="Be brief."', "--search"))
    told = f"Be brief.\n\nYou are a programmer.\n\n{mark('0a1b2c3d')}"
    assert settings(plan)["developer_instructions"] == told
    assert plan.argv[-1] == "--search"


@pytest.mark.slow
def test_asking_although_the_users_settings_say_never(start: Start, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    config = tmp_path / ".codex/config.toml"
    for text, policy in (("", "on-request"), ('"never"', "on-request"), ('"untrusted"', None)):
        config.write_text(f"approval_policy = {text}\n" if text else "")
        assert settings(start(asks=True)).get("approval_policy") == policy
        assert "approval_policy" not in settings(start())
    assert "approval_policy" not in settings(start(asks=True, args=("-a", "never")))


@pytest.mark.slow
def test_the_databases_are_made_once_and_alone(start: Start, tmp_path: Path) -> None:
    for _ in range(5):
        start()
    assert (tmp_path / "calls").read_text().splitlines().count("app-server") == 1


@pytest.mark.slow
def test_databases_that_are_in_use_are_left_alone(start: Start, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    start(env={"CODEX_HOME": str(tmp_path / "used")})
    (tmp_path / "calls").unlink()
    program = tmp_path / "bin/codex"
    (tmp_path / "used/state_5.sqlite").touch()
    newer = program.stat().st_ctime + 60
    os.utime(tmp_path / "used/state_5.sqlite", (newer, newer))
    start(env={"CODEX_HOME": str(tmp_path / "used"), "OTHER": "1"})
    assert "app-server" not in (tmp_path / "calls").read_text()


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    launch = Launch("0a1b2c3d", "programmer", "", tmp_path, tmp_path, {"PATH": str(tmp_path)})
    with pytest.raises(ServerError, match="codex was not found on PATH"):
        PROVIDER.launch(launch)


@given(st.text())
def test_no_profile_can_break_out_of_its_setting(text: str) -> None:
    line = f"developer_instructions={toml(text)}"
    assert "\n" not in line
    assert tomllib.loads(line) == {"developer_instructions": text.encode("utf-8", "replace").decode()}


@given(st.text(min_size=1))
def test_no_directory_can_break_out_of_its_setting(path: str) -> None:
    path = path.encode("utf-8", "replace").decode()
    assert tomllib.loads(f"projects={toml({path: {'trust_level': 'trusted'}})}")["projects"][path]


UPDATE = """\
  Update available · 0.166.0 → 9.9.9

  Release notes: https://github.com/openai/codex/releases/latest

{first} 1. Update now (runs `npm install -g @openai/codex`)
{second} 2. Skip
  3. Skip until next version

  enter continue · esc skip
"""
TRUST = """\
> You are in /home/dev/proj

  Do you trust the contents of this directory? Working with untrusted contents
  comes with higher risk of prompt injection.

› 1. Yes, continue
  2. No, quit

  Press enter to continue
"""
LOGIN = """\
  Welcome to Codex, OpenAI's command-line coding agent

  Choose how you want to use Codex.

> 1. Sign in with ChatGPT
     Usage included with Plus, Pro, Business, and Enterprise plans

  2. Sign in with Device Code
  3. Use an OpenAI API key

  Press enter to continue
"""
EARLY_0_166 = "\n  >_ OpenAI Codex (v0.166.0)\n     /home/dev/proj\n\n\n› Ask Codex to do anything\n"
EARLY_0_149 = "╭───╮\n│ model:       loading   /model │\n╰───╯\n\n› Ask Codex to do anything\n\n  ? for shortcuts\n"
READY = f"{EARLY_0_166}\n  gpt-5-codex default · ~/proj\n"


@pytest.mark.parametrize(
    ("screen", "expected"),
    [
        (UPDATE.format(first="›", second=" "), Dialog(keys=("Down",))),
        (UPDATE.format(first=" ", second="›"), Dialog(keys=("Enter",))),
        (TRUST, Dialog(keys=("Enter",))),
        (EARLY_0_166, Dialog()),
        (f"WARNING: proceeding, even though something is odd\n{EARLY_0_166}", Dialog()),
        (EARLY_0_149, Dialog()),
        (READY, None),
        ("", None),
        ("› Update available, then Skip the rest\n\n  gpt-5-codex default · ~/proj\n", None),
    ],
    ids=[
        "update",
        "update, on skip",
        "trust",
        "early 0.166",
        "warned",
        "early 0.149",
        "ready",
        "nothing yet",
        "only words",
    ],
)
def test_start_up_dialogs(screen: str, expected: Dialog | None, tmp_path: Path) -> None:
    assert PROVIDER.startup_dialog(Screen(screen, command="node"), tmp_path) == expected


def test_a_login_is_left_to_the_user(tmp_path: Path) -> None:
    found = PROVIDER.startup_dialog(Screen(LOGIN, command="node"), tmp_path)
    assert found is not None
    assert not found.keys
    assert "codex login" in found.message


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("/status", " /status"),
        ("!ls", f"{INVISIBLE}!ls"),
        ("  !ls", f"{INVISIBLE}  !ls"),
        ("see @file", "see @file "),
        ("@file is it", "@file is it"),
        ("# note", "# note"),
        ("plain", "plain"),
        ("x" * 2000 + " @file", "x" * 2000 + " @file"),
    ],
)
def test_a_first_line_is_never_a_command(message: str, typed: str) -> None:
    assert PROVIDER.escape(message) == typed


def test_a_folder_without_notes_has_no_record(tmp_path: Path) -> None:
    assert PROVIDER.read_record(tmp_path, 0) is None
    assert PROVIDER.record_position(tmp_path) == 0
    assert not PROVIDER.has_record(tmp_path)
