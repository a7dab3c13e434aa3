"""What the screen readers of all agent CLIs share: rows, shells and spinners in titles."""

import re
from collections.abc import Sequence
from itertools import takewhile

WIDEST_ROW = 1000
TALLEST_SCREEN = 1000
"""No terminal is larger; what is more is no screen, and must not cost time."""

SHELLS = frozenset({"ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "nu", "pwsh", "sh", "tcsh", "xonsh", "zsh"})

SHELL_PROMPT = re.compile(
    r"""
    (?:\([\w.-]{1,40}\)[ ])?                    # a virtual environment
    (?: \[?[\w.-]{1,64}@[\w.-]{1,64}[ :][^$\#%]{0,200}   # user@host:~/project, [user@host project]
      | (?:ba|z|da|k)?sh-[\d.]{1,8}             # bash-5.2
      | [~/][^\s$\#%]{0,200}                    # ~/project
    )[$\#%](?:[ ]|$)
    """,
    re.VERBOSE,
)

SPINNER_IN_TITLE = re.compile(r"[\u2801-\u28ff]|^[◐◑◒◓◜◝◞◟◴◵◶◷] ")


def rows_of(text: str) -> list[str]:
    """The rows without blanks at their ends and without the empty rows at the bottom."""
    rows = text.rstrip().split("\n")[-TALLEST_SCREEN:]
    return [row[:WIDEST_ROW].rstrip() for row in rows] if rows != [""] else []


def is_shell(command: str) -> bool:
    """Whether the program in front is a shell: then the agent is gone."""
    return command.removeprefix("-") in SHELLS


def is_flush(row: str) -> bool:
    """Whether the row begins at the left edge, where the CLIs put their marks; what agents write is indented."""
    return bool(row) and not row[0].isspace()


def ends_in_a_shell(rows: Sequence[str]) -> bool:
    """Whether the last row is a shell's empty prompt; one with a command behind it may be the start of an agent."""
    found = SHELL_PROMPT.match(rows[-1]) if rows else None
    return found is not None and found.end() >= len(rows[-1])


def last_flush(rows: Sequence[str], end: int) -> int:
    """The index of the last row before `end` that begins at the left edge; -1 where there is none."""
    return end - 1 - sum(1 for _ in takewhile(lambda at: not is_flush(rows[at]), range(end - 1, -1, -1)))


def last_message(rows: Sequence[str], marks: tuple[str, ...], detail: str) -> str:
    """The last of what an agent has written in these rows: a row with a mark and the indented ones that follow.

    A row with a detail below it is that of a tool. Where all marks are out of sight, the first rows are the rest of it.
    """
    at = end = len(rows)
    while (at := last_flush(rows, at)) >= 0:
        is_tool = any(row.startswith(detail) for row in rows[at + 1 : at + 2])
        if rows[at].startswith(marks) and not is_tool:
            return _joined([rows[at][1:].lstrip(), *rows[at + 1 : end]])
        if not (rows[at][0].isalnum() and at > 0 and rows[at - 1].strip()):  # else it was wrapped to the left edge
            end = at
    return _joined(rows[:end])


def _joined(rows: Sequence[str]) -> str:
    return "\n".join(row.rstrip().removeprefix("  ") for row in rows).strip()
