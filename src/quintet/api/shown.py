"""What a terminal has shown last, in one line that a message can hold."""

import re
from typing import Final

MOST_LINES: Final = 6
MOST_CHARACTERS: Final = 500
_ESCAPES = re.compile(
    r"""
      \x1b\[ [0-?]* [ -/]* [@-~]                     # colours, cursor
    | \x1b[\]PX^_] [^\x07\x1b]* (?: \x07 | \x1b\\ )?   # titles, links
    | \x1b [ -/]* [0-~]?
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def last_lines(text: str) -> str:
    """The last lines that are not blank, without escape sequences and of bounded length."""
    # a terminal may have shown megabytes; what comes last is in the last of them
    plain = _CONTROL.sub("", _ESCAPES.sub("", text[-100_000:].replace("\r", "\n")))
    lines = [" ".join(line.split()) for line in plain.split("\n") if line.strip()]
    said = " / ".join(lines[-MOST_LINES:])
    return said if len(said) <= MOST_CHARACTERS else f"… {said[-MOST_CHARACTERS:]}"
