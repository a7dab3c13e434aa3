"""How Claude Code is started. The user's settings and login are used as they are; ours come in private files."""

import json
import re
import shlex
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from quintet.providers import editor
from quintet.providers.base import Launch, LaunchPlan, StartRefused
from quintet.providers.claude_code import CLAUDE_CODE
from quintet.providers.claude_code.record import Hooks, read_hook
from quintet.providers.file_follower import Follower
from quintet.providers.private_home import PrivateHome
from quintet.providers.programs import find_program, help_of, knows, refusal, version_of

HOOKS_FILE: Final = "own/hooks.jsonl"
SETTINGS_FILE: Final = "settings.json"
INSTRUCTIONS_FILE: Final = "instructions.md"
LOGIN_FILE: Final = "has-login"
"""there where the user is logged in"""
HOOKS: Final = ("UserPromptSubmit", "Stop", "SessionEnd")
LATER_HOOK, KNOWN_FROM = "StopFailure", (2, 1, 100)
"""a release that does not know a hook skips the whole file"""
EDITOR_FROM: Final = (2, 1, 200)
"""older releases do not send a long text that came out of the editor"""
_UNATTENDED: Final = "--dangerously-skip-permissions"
_NO_PROMPT: Final = "Input must be provided"
_AS_ROOT: Final = "cannot be used with root"
_PERMISSION_OPTION = re.compile(
    r"--(?:permission-mode|dangerously-skip-permissions|allow-dangerously-skip-permissions|restricted)\b.*"
)
_ASKING_MODE = re.compile(r"""["']manual["']""")


def plan(launch: Launch) -> LaunchPlan:
    """The command line, and the files that it names."""
    program = find_program(CLAUDE_CODE, launch.env)
    known = help_of(program, launch.env)
    unattended = not launch.asks and not sets_permissions(launch.args)
    argv = [program, "--settings", str(launch.folder / SETTINGS_FILE)]
    instructions = launch.instructions.strip()
    if instructions:
        argv += _instructions(known, launch.folder / INSTRUCTIONS_FILE, instructions)
    conversation = find_conversation(launch.previous, launch.home) if launch.previous else ""
    if conversation:
        argv += ["--resume", conversation]
    elif "--session-id" not in launch.args and knows(known, "--session-id"):
        argv += ["--session-id", str(uuid.uuid4())]
    argv += _flags(launch, known)
    version = version_of(program, launch.env)
    hooks = (*HOOKS, LATER_HOOK) if version >= KNOWN_FROM else HOOKS
    written = {
        SETTINGS_FILE: json.dumps(settings(launch.folder / HOOKS_FILE, hooks, unattended=unattended)),
        INSTRUCTIONS_FILE: instructions,
    }
    if has_login(launch.env):
        written[LOGIN_FILE] = ""
    env = {"DISABLE_AUTOUPDATER": "1"}
    visual = editor.command(launch.folder)
    if visual is not None and version >= EDITOR_FROM:
        env["VISUAL"] = visual
        written[editor.SCRIPT] = editor.script(launch.folder, launch.env)
    return LaunchPlan(argv=(*argv, *launch.args), env=env, files=written, continues=bool(conversation))


def _flags(launch: Launch, known: str) -> list[str]:
    """The model, and what Claude Code may do."""
    flags = ["--model", launch.model] if launch.model else []
    if sets_permissions(launch.args):
        return flags
    asking = ["--permission-mode", "manual" if _ASKING_MODE.search(known) else "default"]
    return flags + (asking if launch.asks else [_UNATTENDED])


def try_flags(launch: Launch) -> StartRefused | None:
    """Start Claude Code without a prompt: it checks its flags and ends at once."""
    program = find_program(CLAUDE_CODE, launch.env)
    flags = [*_flags(launch, help_of(program, launch.env)), *launch.args]
    env = {**launch.env, "DISABLE_AUTOUPDATER": "1"}
    said = refusal([*launch.before, program, *flags, "--print"], env, launch.cwd)
    if not said or _NO_PROMPT in said:
        return None
    if _AS_ROOT in said:
        return StartRefused(said, "run as another user; in a container set IS_SANDBOX=1; or PERMISSIONS=ask")
    return StartRefused(said, f"try {shlex.join([CLAUDE_CODE.program, *flags])}")


def find_conversation(folder: Path, home: PrivateHome | None) -> str:
    """The id of a terminal's conversation; empty where there is none to continue."""
    found = Follower(folder / HOOKS_FILE, Hooks(), read_hook, below=folder).read()
    transcript = home.outside(found.transcript) if home else Path(found.transcript or "/")
    return found.session if transcript is not None and transcript.is_file() else ""


def has_login(env: Mapping[str, str]) -> bool:
    """Whether the user has logged in; the credentials themselves are not read."""
    home = Path(env.get("HOME") or Path.home())
    named = env.get("CLAUDE_CONFIG_DIR")
    if (Path(named) if named else home / ".claude").joinpath(".credentials.json").exists():
        return True
    try:
        known = json.loads(((Path(named) if named else home) / ".claude.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(known, dict) and bool(known.get("oauthAccount"))


def settings(record: Path, hooks: Sequence[str], *, unattended: bool) -> dict[str, Any]:
    """What is added to the user's settings: hooks that append to a file, and the notice that the user need not see."""
    append = {"type": "command", "command": f"{{ cat; echo; }} >> {shlex.quote(str(record))}"}
    found: dict[str, Any] = {
        "hooks": {event: [{"hooks": [append]}] for event in hooks},
        # whoever gave the prompt waits for the limit and gives it again; one of the two is enough
        "autoContinueAtUsageLimit": False,
    }
    return found | ({"skipDangerousModePermissionPrompt": True} if unattended else {})


def sets_permissions(args: Sequence[str]) -> bool:
    """Whether the user's own arguments say what Claude Code may do; then they alone count."""
    return any(_PERMISSION_OPTION.fullmatch(word) for word in args)


def _instructions(known: str, file: Path, text: str) -> list[str]:
    """The profile, in a private file where the release can read one: command lines are public."""
    if "--append-system-prompt-file" in known or "--append-system-prompt[-file]" in known:
        return ["--append-system-prompt-file", str(file)]
    return ["--append-system-prompt", text]
