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
