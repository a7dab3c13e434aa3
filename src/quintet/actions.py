"""What an agent did in a turn, by its own record: the commands it ran, the files it read and changed."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from quintet.ansi import plain

MOST: Final = 100
"""actions of a turn that are kept"""
FIRST: Final = 30
"""of them from the beginning of the turn; the others are the last ones"""
LONGEST: Final = 400
"""characters of a command or a path"""
_READ: Final = 20_000
"""characters of a text that are looked at"""
_CUT: Final = "…"
_HERE = re.compile(r"<<-?[ \t]*(['\"\\]?)([A-Za-z_][A-Za-z_0-9]{0,80})['\"]?")
MOST_CODE: Final = 10**9


class ActionKind(StrEnum):
    """What sort of thing was done."""

    COMMAND = "command"
    READ = "read"
    """a file was read, or files were searched"""
    CHANGE = "change"
    """a file was written, edited or deleted"""
    TOOL = "tool"
    """any other tool, for instance one of an MCP server, or a sub-agent"""


class Action(BaseModel):
    """One thing that an agent did."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    kind: ActionKind
    text: str = Field(description="the command, the file or the tool; a long one is shortened")
    exit_code: Annotated[int, Field(ge=-MOST_CODE, le=MOST_CODE)] | None = Field(
        default=None, description="of a command; null where it is not known, or had not ended"
    )

    @property
    def failed(self) -> bool:
        """Whether a command has ended with another exit code than 0."""
        return self.exit_code not in (0, None)


class TurnActions(BaseModel):
    """What an agent did in a turn, in order. That nothing is known is another thing than that nothing was done."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    items: tuple[Action, ...] = ()
    left_out: Annotated[int, Field(ge=0, le=10**9)] = Field(default=0, description="actions that are not listed")

    def __add__(self, other: "TurnActions") -> "TurnActions":
        return bounded([*self.items, *other.items], self.left_out + other.left_out)

    @property
    def commands(self) -> tuple[Action, ...]:
        return tuple(action for action in self.items if action.kind is ActionKind.COMMAND)


def bounded(actions: Iterable[Action], left_out: int = 0) -> TurnActions:
    """The first and the last of many actions."""
    items = tuple(actions)
    over = max(len(items) - MOST, 0)
    kept = (*items[:FIRST], *items[FIRST + over :]) if over else items
    return TurnActions(items=kept, left_out=left_out + over)


def action(kind: ActionKind, text: str, exit_code: int | None = None) -> Action:
    """An action of any text: without what steers a terminal, and shortened."""
    known = exit_code if exit_code is not None and abs(exit_code) <= MOST_CODE else None
    return Action(kind=kind, text=shorten(text), exit_code=known)


def shorten(text: str) -> str:
    """A command or a path in a few hundred characters; of a text that goes into a command, only its ends."""
    text = plain(_ends(text, _READ)).strip()
    return text if len(text) <= LONGEST else _ends(without_bodies(text), LONGEST)


def without_bodies(command: str, *, ends: bool = True) -> str:
    """A shell command without the texts that it feeds to programs (here-documents), or also without their end marks."""
    kept: list[str] = []
    waiting: list[str] = []
    for line in command.split("\n"):
        if waiting:
            if line.strip() == waiting[0]:
                waiting.pop(0)
                if ends:
                    kept.append(line)
            elif kept[-1] != _CUT:
                kept.append(_CUT)
            continue
        kept.append(line)
        waiting = [found[2] for found in _HERE.finditer(line)]
    return "\n".join(kept)


def _ends(text: str, most: int) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= most else f"{text[: most * 3 // 4]} {_CUT} {text[-(most // 4) + 3 :]}"


class ActionLog:
    """Collects the actions of a turn while its record is read; results come later than their calls."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Action]] = {}
        self._left_out = 0
        self._number = 0

    def add(self, call: str, *actions: Action) -> None:
        """What a call does; calling again replaces it."""
        self._number += 1
        self._calls[call or f"#{self._number}"] = list(actions)
        if len(self._calls) > MOST:
            dropped = self._calls.pop(list(self._calls)[FIRST])
            self._left_out += len(dropped)

    def __contains__(self, call: str) -> bool:
        return call in self._calls

    def is_command(self, call: str) -> bool:
        return any(one.kind is ActionKind.COMMAND for one in self._calls.get(call, ()))

    def ended(self, call: str, exit_code: int | None) -> None:
        """A command has ended."""
        if call in self._calls and exit_code is not None and abs(exit_code) <= MOST_CODE:
            self._calls[call] = [
                one.model_copy(update={"exit_code": exit_code}) if one.kind is ActionKind.COMMAND else one
                for one in self._calls[call]
            ]

    def refused(self, call: str) -> None:
        """The call was not carried out."""
        self._calls.pop(call, None)

    @property
    def actions(self) -> TurnActions:
        return bounded((one for calls in self._calls.values() for one in calls), self._left_out)
