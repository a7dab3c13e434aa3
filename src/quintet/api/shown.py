"""What a terminal has shown last, in one line that a message can hold."""

from typing import Final

from quintet.ansi import plain

MOST_LINES: Final = 6
MOST_CHARACTERS: Final = 500


def last_lines(text: str) -> str:
    """The last lines that are not blank, without escape sequences and of bounded length."""
    # a terminal may have shown megabytes; what comes last is in the last of them
    shown = plain(text[-100_000:].replace("\r", "\n"))
    lines = [" ".join(line.split()) for line in shown.split("\n") if line.strip()]
    said = " / ".join(lines[-MOST_LINES:])
    return said if len(said) <= MOST_CHARACTERS else f"… {said[-MOST_CHARACTERS:]}"
