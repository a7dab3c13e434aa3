"""How Claude Code is started and what it asks at first."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quintet.errors import ServerError
from quintet.providers import editor
from quintet.providers.base import Dialog, Launch, LaunchPlan, TurnRecord
from quintet.providers.claude_code.launch import (
    HOOKS,
    HOOKS_FILE,
    INSTRUCTIONS_FILE,
    SETTINGS_FILE,
    find_conversation,
    settings,
)
from quintet.providers.claude_code.provider import PROVIDER
from quintet.providers.private_home import PrivateHome
from quintet.providers.screen import Screen

HELP_2_1_325 = """\
  --append-system-prompt <prompt>       Append a system prompt
                                        --append-system-prompt[-file], --add-dir
  --permission-mode <mode>              (choices: "acceptEdits", "auto", "manual")
  --session-id <uuid>                   Use a specific session ID
"""
HELP_OLD = '  --append-system-prompt <prompt>\n  --permission-mode <mode> (choices: "default", "plan")\n'
UNATTENDED = "--dangerously-skip-permissions"
Start = Callable[..., LaunchPlan]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def plan(help_text: str = HELP_2_1_325, env: dict[str, str] | None = None, **more: Any) -> LaunchPlan:
        program = tmp_path / "bin/claude"
        program.parent.mkdir(exist_ok=True)
        version = "2.1.325" if help_text == HELP_2_1_325 else "2.1.20"
        program.write_text(f"#!/bin/sh\necho {version}\ncat <<'END'\n{help_text}END\n")
        program.chmod(0o755)
        given_env = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), **(env or {})}
        told = {"profile": "programmer", "instructions": "You are a programmer.", **more}
        return PROVIDER.launch(Launch("0a1b2c3d", folder=tmp_path / "t", cwd=tmp_path, env=given_env, **told))

    return plan


def test_claude_code_starts_unattended_with_its_profile_in_a_private_file(start: Start, tmp_path: Path) -> None:
    plan = start(model="opus", args=("--verbose",))
    assert UNATTENDED in plan.argv
    assert plan.argv[plan.argv.index("--model") + 1] == "opus"
    assert plan.argv[plan.argv.index("--append-system-prompt-file") + 1] == str(tmp_path / "t" / INSTRUCTIONS_FILE)
    assert "You are a programmer." not in " ".join(plan.argv), "command lines are public"
    assert plan.files[INSTRUCTIONS_FILE] == "You are a programmer."
    assert plan.argv[-1] == "--verbose"
    given_settings = json.loads(plan.files[SETTINGS_FILE])
    assert given_settings["skipDangerousModePermissionPrompt"] is True
    assert set(given_settings["hooks"]) == {*HOOKS, "StopFailure"}
    assert plan.env["DISABLE_AUTOUPDATER"] == "1"


def test_a_prompt_with_tabs_goes_through_the_editor(start: Start, tmp_path: Path) -> None:
    plan = start(env={"EDITOR": "nano"})
    assert plan.env["VISUAL"] == f"/bin/sh {tmp_path}/t/editor.sh"
    folder = tmp_path / "t"
    folder.mkdir()
    assert PROVIDER.editor_key(folder, "a\ttab") is None, "not without the script"
    (folder / editor.SCRIPT).write_text(plan.files[editor.SCRIPT])
    assert PROVIDER.editor_key(folder, "a\ttab") == "C-g"
    assert PROVIDER.editor_key(folder, "no tab") is None, "a paste is simpler"


@pytest.mark.parametrize(
    ("composer", "holds"),
    [
        (["❯ \u203a 1. Yes, proceed (y)", "  [...Truncated text #1 +4736 lines...]e' quotes"], True),
        (["❯ the second", "  line", "  and the", "  third"], True),
        (["❯ the second", "  🎻 line", "  and the third"], True),
        (['❯ Try "refactor the parser"'], False),
        (["❯ some", "  other", "  draft"], False),
        (["❯"], False),
    ],
)
def test_a_composer_that_shows_a_part_of_a_text(composer: list[str], holds: bool) -> None:
    rule = "─" * 60
    screen = Screen("\n".join(["● Done.", "", rule, *composer, rule, "  ⏵⏵ bypass permissions on"]))
    assert PROVIDER.holds_draft(screen, "the first\nthe second\tline\nand the third") is holds


def test_an_offer_at_a_usage_limit_is_put_away_and_a_permission_is_not() -> None:
    offer = ["▔" * 60, "   What do you want to do?", "", "   ❯ 1. Stop and wait for limit to reset"]
    offer += ["     2. Upgrade your plan", "", "   Enter to confirm · Esc to cancel"]
    quoted = [f"  {row}" for row in offer]
    rule = "─" * 60
    permission = [rule, " Do you want to proceed?", " ❯ 1. Yes", "   2. No", "", " Esc to cancel"]
    above = ["❯ go", "", "  ⎿  You've hit your 5-hour limit · resets 2:30pm (UTC)", ""]
    assert PROVIDER.dismiss_keys(Screen("\n".join([*above, *offer]))) == ("Escape",)
    assert PROVIDER.dismiss_keys(Screen("\n".join([*above, *quoted, "", *permission]))) == ()
    assert PROVIDER.dismiss_keys(Screen("\n".join([*above, *quoted, "", rule, "❯", rule, "  footer"]))) == ()


def test_an_older_release_gets_what_it_knows(start: Start) -> None:
    plan = start(HELP_OLD)
    assert "VISUAL" not in plan.env
    assert plan.argv[plan.argv.index("--append-system-prompt") + 1] == "You are a programmer."
    assert "--session-id" not in plan.argv
    assert set(json.loads(plan.files[SETTINGS_FILE])["hooks"]) == set(HOOKS), "it would skip the whole file"


@pytest.mark.parametrize(("help_text", "mode"), [(HELP_2_1_325, "manual"), (HELP_OLD, "default")])
def test_asking_instead(start: Start, help_text: str, mode: str) -> None:
    plan = start(help_text, asks=True)
    assert UNATTENDED not in plan.argv
    assert plan.argv[plan.argv.index("--permission-mode") + 1] == mode
    assert "skipDangerousModePermissionPrompt" not in plan.files[SETTINGS_FILE]


def test_the_users_own_permissions_count(start: Start) -> None:
    plan = start(args=("--permission-mode", "plan"))
    assert UNATTENDED not in plan.argv
    assert plan.argv.count("--permission-mode") == 1


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    launch = Launch("0a1b2c3d", "programmer", "", tmp_path, tmp_path, {"PATH": str(tmp_path)})
    with pytest.raises(ServerError, match="claude was not found on PATH"):
        PROVIDER.launch(launch)


def test_the_hooks_append_lines_to_the_record(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder"'
    (folder / editor.OWN).mkdir(parents=True)
    given_hooks = settings(folder / HOOKS_FILE, HOOKS, unattended=True)["hooks"]
    for event, more in (("UserPromptSubmit", {"prompt": "hello"}), ("Stop", {"last_assistant_message": "Done."})):
        command = given_hooks[event][0]["hooks"][0]["command"]
        told = json.dumps({"hook_event_name": event, "transcript_path": str(folder / "none.jsonl"), **more})
        subprocess.run(["/bin/sh", "-c", command], input=told, text=True, check=True)
    assert PROVIDER.read_record(folder, 0) == TurnRecord(ended=True, last_message="Done.", final=False)
    assert PROVIDER.read_record(folder, PROVIDER.record_position(folder)) is None
    assert PROVIDER.has_record(folder)


RULE = "─" * 80
TRUST = f"""\
{RULE}
 Accessing workspace:

 /home/dev/proj

 Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open source
 project, or work from your team).

 Security guide

 {{first}} No, exit
 {{second}} Yes, I trust this folder

 Enter to confirm · Esc to cancel
"""
KEY = f"""\
{RULE}
  Detected a custom API key in your environment

  ANTHROPIC_API_KEY: sk-ant-...00000000000000000000

  Do you want to use this API key?

    Yes
  ❯ No (recommended)

  Enter to confirm · Esc to cancel
"""
BOXED_BYPASS = """\
╭──────────────────────────────────────────────────────────────╮
│ WARNING: Claude Code running in Bypass Permissions mode      │
│                                                              │
│ By proceeding, you accept all responsibility.                │
│                                                              │
│ ❯ 1. No, exit                                                │
│   2. Yes, I accept                                           │
╰──────────────────────────────────────────────────────────────╯
   Enter to confirm · Esc to cancel
"""
READY = f" Claude Code v2.1.325\n\n{RULE}\n❯ \n{RULE}\n  ⏵⏵ bypass permissions on (shift+tab to cycle)\n"


@pytest.mark.parametrize(
    ("screen", "expected"),
    [
        (TRUST.format(first="❯", second=" "), Dialog(keys=("Down",))),
        (TRUST.format(first=" ", second="❯"), Dialog(keys=("Enter",))),
        (KEY, Dialog(keys=("Up",))),
        (BOXED_BYPASS, Dialog(keys=("Down",))),
        (READY, None),
        ("", None),
    ],
    ids=["trust", "trust, on yes", "key", "bypass", "ready", "nothing yet"],
)
def test_start_up_dialogs(screen: str, expected: Dialog | None, tmp_path: Path) -> None:
    assert PROVIDER.startup_dialog(Screen(screen, command="claude"), tmp_path) == expected


def test_with_a_login_the_user_decides_who_pays(start: Start, tmp_path: Path) -> None:
    assert "has-login" not in start().files
    (tmp_path / ".claude.json").write_text('{"oauthAccount": {"emailAddress": "a@localhost"}}')
    assert "has-login" in start().files
    (tmp_path / "has-login").touch()
    found = PROVIDER.startup_dialog(Screen(KEY, command="claude"), tmp_path)
    assert found is not None
    assert not found.keys
    assert "API key" in found.message


@pytest.mark.parametrize("message", ["/status", "!ls", "@file", "#note"])
def test_a_first_line_is_never_a_command(message: str) -> None:
    assert PROVIDER.escape(message) == f" {message}"


def test_in_a_sandbox_only_a_transcript_in_its_own_home_is_read(start: Start, tmp_path: Path) -> None:
    home = PrivateHome.make(tmp_path, Path("/home/u"))
    assert home.outside("/home/u/.claude/a.jsonl") == home.folder / ".claude/a.jsonl"
    for path in ("/etc/passwd", "/home/u/../v/a", "/home/user/a", "relative", ""):
        assert home.outside(path) is None
    assert "CLAUDE_CONFIG_DIR" not in start(home=home).env
    (home.folder / "t.jsonl").touch()
    (tmp_path / editor.OWN).mkdir()
    for transcript, conversation in (
        ("/home/u/t.jsonl", "s1"),
        ("/etc/passwd", ""),
        (str(home.folder / "t.jsonl"), ""),
    ):
        told = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "transcript_path": transcript}
        (tmp_path / HOOKS_FILE).write_text(json.dumps(told) + "\n")
        assert find_conversation(tmp_path, home) == conversation
