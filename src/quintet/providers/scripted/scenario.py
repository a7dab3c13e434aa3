"""A scenario file: for each role what its agent does, prompt by prompt.

```json
{"roles": {"tester": {"swallow_enter": 1, "turns": [[{"run": "make check"}, {"reply": "RESULT: {exit_code}"}]]}}}
```
A role is a list of turns, or an object with `turns` and the way the program starts. The nth prompt gets the nth
turn, and the last turn repeats. A turn is a list of actions, each an object with one of the keys of `ACTIONS`.
"""

import json
import reprlib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from quintet.errors import ConfigError

Action = dict[str, Any]
ACTIONS: Final = {
    "say": "print a text",
    "think": "wait some seconds at work",
    "run": "run a shell command; {output} and {exit_code} are those of the last one",
    "read": "read a file and print its beginning",
    "write": "write a file: {\"path\": ..., \"text\": ...}",
    "save_prompt": "write the prompt, as it arrived, to a file",
    "reply": "the response: printed, and written to the file that the prompt asks for",
    "when": "\"pass\" or \"fail\": do `then`, else `else`, by the last command's exit code",
    "ask_permission": "ask for permission, and wait for y or Enter; n ends the turn",
    "ask_question": "let the user choose, and wait for a digit or Enter",
    "fail": "give no answer: usage_limit or rate_limit (for `seconds`), login, model, server_error, connection, other",
    "hang": "stay at work for ever",
    "crash": "end by a signal",
    "exit": "end with this exit code, back to the shell",
}  # fmt: skip
MANNERS: Final = (
    "file", "say_only", "late", "pieces", "empty", "twice", "huge", "not_utf8", "symlink", "directory",
)  # fmt: skip
"""how a reply gets into its file: at once; not at all; seconds after the turn; bit by bit; as nothing; two times;
with megabytes behind it; with bytes that are no text; behind a link; in a directory of the file's name"""


@dataclass(frozen=True)
class RoleScript:
    """What one role does."""

    turns: list[list[Action]] = field(default_factory=list)
    start_seconds: float = 0.0
    swallow_enter: int = 0
    """how often Enter is ignored after a paste"""
    dialog: str = ""
    """a question before the first prompt; with "(press t)" in it, t answers it"""
    log: str = ""
    """a file that gets a line for every prompt that arrives and every response that is completely written"""

    def turn(self, number: int) -> list[Action]:
        """The actions for the nth prompt, counted from 1."""
        if not self.turns:
            return [{"reply": "Nothing is scripted for this role."}]
        return self.turns[min(number, len(self.turns)) - 1]


_OPTIONS: Final = tuple(option.name for option in fields(RoleScript))


def load_role_script(path: Path | None, role: str) -> RoleScript:
    """A role's part in a scenario file."""
    if path is None:
        return RoleScript(turns=[[{"reply": "Done."}]])
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"scenario {path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"scenario {path}: is no JSON ({error})") from None
    roles = value.get("roles") if isinstance(value, dict) else None
    if not isinstance(roles, dict):
        raise ConfigError(f'scenario {path}: has no object "roles"')
    part = roles.get(role, [])
    options = {"turns": part} if isinstance(part, list) else part
    if not isinstance(options, dict) or not options.keys() <= set(_OPTIONS):
        known = ", ".join(_OPTIONS)
        raise ConfigError(
            f"scenario {path}: {role}: found {reprlib.repr(part)}, allowed: turns, or an object with {known}"
        )
    turns = options.get("turns", [])
    for number, turn in enumerate(turns if isinstance(turns, list) else [turns], 1):
        _check_all(turn, f"scenario {path}: {role}, turn {number}")
    return RoleScript(**options)


def _check(action: Any, where: str) -> None:
    known = [key for key in action if key in ACTIONS] if isinstance(action, dict) else []
    if len(known) != 1:
        raise ConfigError(f"{where}: an action has exactly one of {', '.join(ACTIONS)}; found {reprlib.repr(action)}")
    if action.get("manner", "file") not in MANNERS:
        raise ConfigError(f"{where}: manner is one of {', '.join(MANNERS)}")
    for branch in ("then", "else"):
        _check_all(action.get(branch, []), where)


def _check_all(actions: Any, where: str) -> None:
    if not isinstance(actions, list):
        raise ConfigError(f"{where}: is no list of actions; found {reprlib.repr(actions)}")
    for action in actions:
        _check(action, where)
