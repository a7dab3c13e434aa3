"""Lines with a head and a text that fit the terminal they are read in."""

import shutil
import sys
import textwrap
from typing import Final

_NARROWEST: Final = 30


def hanging(head: str, text: str) -> str:
    """The text behind its head, going on below itself at a blank; one line where no terminal shows it."""
    if not sys.stdout.isatty():
        return f"{head}{text}"
    width = max(shutil.get_terminal_size().columns, len(head) + _NARROWEST)
    wrapper = textwrap.TextWrapper(
        width, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False, break_on_hyphens=False
    )
    return wrapper.fill(text)
