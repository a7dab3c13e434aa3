"""How Codex is started. The user's settings and login are used as they are: all changes are `-c` options."""

import json
import os
import re
import shlex
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from quintet.providers.base import Launch, LaunchPlan, StartRefused
from quintet.providers.codex import CODEX
from quintet.providers.codex.databases import make_ready
from quintet.providers.codex.rollouts import conversation_id, find_rollout, mark
from quintet.providers.programs import find_program, help_of, knows, refusal
from quintet.variables import is_variable

NOTES: Final = "codex.json"
_WHERE_KNOWN: Final = ("--no-daemon", "--no-alt-screen")
"""a daemon would outlive the run; without the alternate screen the scrollback holds the conversation"""
_UNATTENDED: Final = "--dangerously-bypass-approvals-and-sandbox"
_PERMISSION_OPTION = re.compile(
    r"-[as]\b.*|--(?:ask-for-approval|sandbox|full-auto|approve-for-me|yolo|dangerously-bypass-approvals-and-sandbox)\b.*"
)
_PERMISSION_SETTING = re.compile(r"(?:approval_policy|sandbox_mode|default_permissions|approvals_reviewer)\s*=")

_CONFIG_OPTION = re.compile(r"(?:-c|--config(?==|$))=?(.*)", re.DOTALL)
_INSTRUCTIONS_SETTING = re.compile(r"\s*developer_instructions\s*=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Notes:
    """What the record reader has to know of a launch; kept in the terminal's folder."""

    home: str
    mark: str
    launched: float
    private: bool = False
    """whether the home is that of a sandbox, in which nothing but the agent makes links"""

    @property
    def below(self) -> Path | None:
        return Path(self.home) if self.private else None

    @staticmethod
    def read(folder: Path) -> "Notes | None":
        try:
            notes = Notes(**json.loads((folder / NOTES).read_text(encoding="utf-8")))
            return Notes(os.fsdecode(notes.home), os.fsdecode(notes.mark), float(notes.launched), notes.private is True)
        except (OSError, ValueError, TypeError, OverflowError, RecursionError):
            return None


def plan(launch: Launch) -> LaunchPlan:
    """The command line and the notes for the record reader."""
    program = find_program(CODEX, launch.env)
    known = help_of(program, launch.env)
    user_home = codex_home(launch.env)
    home = launch.home.folder / ".codex" if launch.home else user_home
    is_private = launch.home is not None
    if not is_private:
        make_ready(program, user_home, launch.env)
    previous = Notes.read(launch.previous) if launch.previous else None
    conversation = find_conversation(replace(previous, home=str(home), private=is_private)) if previous else ""
    own = previous.mark if previous and conversation else mark(launch.terminal_id)
    config = _config(user_home)
    args, instructions = take_instructions(launch.args)
    if instructions is None:
        instructions = config.get("developer_instructions")
    texts = [instructions.strip() if isinstance(instructions, str) else "", launch.instructions.strip(), own]
    settings: dict[str, Any] = {
        "check_for_update_on_startup": False,
        # the user has started the run there; the question would end in the user's own config.toml
        "projects": {str(launch.cwd): {"trust_level": "trusted"}},
        "notice": {"hide_rate_limit_model_nudge": True},
        "developer_instructions": "\n\n".join(filter(None, texts)),
    }
    argv = [program, "resume", conversation] if conversation else [program]
    argv += _flags(launch, known)
    if launch.asks and not sets_permissions(launch.args) and config.get("approval_policy", "never") == "never":
        settings["approval_policy"] = "on-request"
    for name, value in settings.items():
        argv += ["-c", f"{name}={toml(value)}"]
    launched = previous.launched if previous and conversation else time.time()
    notes = Notes(str(home), own, launched, is_private)
    files = {NOTES: json.dumps(asdict(notes))}
    return LaunchPlan(argv=(*argv, *args), files=files, continues=bool(conversation))


def _flags(launch: Launch, known: str) -> list[str]:
    """What the release knows, what Codex may do, and the model."""
    flags = [option for option in _WHERE_KNOWN if knows(known, option)]
    if not launch.asks and not sets_permissions(launch.args):
        flags.append(_UNATTENDED)
    return flags + (["--model", launch.model] if launch.model else [])


def try_flags(launch: Launch) -> StartRefused | None:
    """Ask for the release: Codex checks all its flags before it answers."""
    program = find_program(CODEX, launch.env)
    flags = [*_flags(launch, help_of(program, launch.env)), *launch.args]
    said = refusal([*launch.before, program, *flags, "--version"], launch.env, launch.cwd)
    return StartRefused(said, f"try {shlex.join([CODEX.program, *flags])}") if said else None


def find_conversation(notes: Notes) -> str:
    """The id of a terminal's conversation; empty where it never had one."""
    path = find_rollout(Path(notes.home), notes.mark, notes.launched, {}, notes.below)
    return conversation_id(path, notes.below) if path is not None else ""


def codex_home(env: Mapping[str, str]) -> Path:
    """Where Codex keeps its settings and rollouts."""
    named = env.get("CODEX_HOME")
    return Path(named) if named else Path(env.get("HOME") or Path.home()) / ".codex"


def key_variables(env: Mapping[str, str]) -> list[str]:
    """The variables that the user's own model providers take their keys from."""
    providers = _config(codex_home(env)).get("model_providers")
    found = [one for one in (providers.values() if isinstance(providers, dict) else ()) if isinstance(one, dict)]
    headers = [one["env_http_headers"] for one in found if isinstance(one.get("env_http_headers"), dict)]
    names = [*(one.get("env_key") for one in found), *(name for one in headers for name in one.values())]
    return [name for name in names if isinstance(name, str) and is_variable(name)]


def sets_permissions(args: Sequence[str]) -> bool:
    """Whether the user's own arguments say what Codex may do; then they alone count."""
    return any(_PERMISSION_OPTION.fullmatch(word) or _PERMISSION_SETTING.match(word) for word in args)


def take_instructions(args: Sequence[str]) -> tuple[list[str], str | None]:
    """The user's own arguments without their developer_instructions, which would replace ours; and these."""
    kept: list[str] = []
    found = None
    words = iter(args)
    for word in words:
        option = _CONFIG_OPTION.fullmatch(word)
        value = (option[1] or next(words, None)) if option else None
        setting = _INSTRUCTIONS_SETTING.fullmatch(value) if value is not None else None
        if setting is None:
            kept += [word] if option is None or option[1] or value is None else [word, value]
        else:
            found = _value(setting[1])
    return kept, found


def _value(text: str) -> str:
    """The value of a setting on the command line, as Codex reads it: TOML, or else the text itself."""
    try:
        return str(tomllib.loads(f"value = {text}")["value"])
    except ValueError:
        return text.strip()


def toml(value: Any) -> str:
    """A value in TOML, on one line. Whatever a text holds, it stays a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(item)}" for key, item in value.items()) + "}"
    # JSON's escapes are TOML's too, but for surrogates, which no UTF-8 holds, and DEL
    text = str(value).encode("utf-8", errors="replace").decode("utf-8")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _config(home: Path) -> dict[str, Any]:
    """The user's own settings, some of which ours would replace."""
    try:
        return tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
