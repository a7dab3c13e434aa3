"""How Claude Code is started. The user's settings and login are used as they are; ours come in private files."""

import json
import re
import shlex
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from quintet.providers.base import Launch, Plan
from quintet.providers.programs import asks, find_program, help_of, knows

HOOKS_FILE: Final = "hooks.jsonl"
SETTINGS_FILE: Final = "settings.json"
INSTRUCTIONS_FILE: Final = "instructions.md"
HOOKS: Final = ("UserPromptSubmit", "Stop", "StopFailure", "SessionEnd")
_UNATTENDED: Final = "--dangerously-skip-permissions"
_PERMISSION_OPTION = re.compile(
    r"--(?:permission-mode|dangerously-skip-permissions|allow-dangerously-skip-permissions|restricted)\b.*"
)
_ASKING_MODE = re.compile(r"""["']manual["']""")


def plan(launch: Launch) -> Plan:
    """The command line, and the files that it names."""
    program = find_program("claude", launch.env, "npm install -g @anthropic-ai/claude-code")
    known = help_of(program, launch.env)
    unattended = not asks(launch.env) and not sets_permissions(launch.args)
    argv = [program, "--settings", str(launch.folder / SETTINGS_FILE)]
    instructions = launch.instructions.strip()
    if instructions:
        argv += _instructions(known, launch.folder / INSTRUCTIONS_FILE, instructions)
    if "--session-id" not in launch.args and knows(known, "--session-id"):
        argv += ["--session-id", str(uuid.uuid4())]
    if launch.model:
        argv += ["--model", launch.model]
    if unattended:
        argv.append(_UNATTENDED)
    elif not sets_permissions(launch.args):
        argv += ["--permission-mode", "manual" if _ASKING_MODE.search(known) else "default"]
    return Plan(
        argv=(*argv, *launch.args),
        env={"DISABLE_AUTOUPDATER": "1"},
        files={
            SETTINGS_FILE: json.dumps(settings(launch.folder / HOOKS_FILE, unattended=unattended)),
            INSTRUCTIONS_FILE: instructions,
        },
    )


def settings(hooks: Path, *, unattended: bool) -> dict[str, Any]:
    """What is added to the user's settings: hooks that append to a file, and the notice that the user need not see."""
    append = {"type": "command", "command": f"{{ cat; echo; }} >> {shlex.quote(str(hooks))}"}
    found: dict[str, Any] = {"hooks": {event: [{"hooks": [append]}] for event in HOOKS}}
    return found | ({"skipDangerousModePermissionPrompt": True} if unattended else {})


def sets_permissions(args: Sequence[str]) -> bool:
    """Whether the user's own arguments say what Claude Code may do; then they alone count."""
    return any(_PERMISSION_OPTION.fullmatch(word) for word in args)


def _instructions(known: str, file: Path, text: str) -> list[str]:
    """The profile, in a private file where the release can read one: command lines are public."""
    if "--append-system-prompt-file" in known or "--append-system-prompt[-file]" in known:
        return ["--append-system-prompt-file", str(file)]
    return ["--append-system-prompt", text]
