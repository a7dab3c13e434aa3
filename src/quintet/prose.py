"""Words for a terminal: lines that end at blanks, commands with notes, numbers with their nouns, names of files."""

import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Final, TextIO

WIDTH: Final = 80
_LONGEST_SLUG: Final = 60
_NARROWEST: Final = 30
"""columns that a text has beside its head, however narrow the terminal is"""


def columns() -> int:
    """How wide a text for people may be: 80 columns, or fewer where the terminal is narrower."""
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, WIDTH)) if sys.stdout.isatty() else WIDTH


def wrapped(text: str, width: int | None = None, indent: str = "", rest: str | None = None) -> str:
    """A text in lines that are broken at blanks only; `rest` is the indent of all lines but the first."""
    following = indent if rest is None else rest
    return textwrap.fill(
        text,
        width or columns(),
        initial_indent=indent,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    )


def for_stream(text: str, stream: TextIO, rest: str = "") -> str:
    """One line as a stream should get it: wrapped for people on a terminal, whole for programs."""
    if not stream.isatty():
        return text
    return wrapped(text, min(shutil.get_terminal_size().columns, WIDTH), rest=rest)


def hanging(head: str, text: str) -> str:
    """A text behind its head, wrapped below itself on a terminal; one line where standard output is no terminal."""
    if not sys.stdout.isatty():
        return f"{head}{text}"
    width = max(shutil.get_terminal_size().columns, len(head) + _NARROWEST)
    return wrapped(text, width, head, rest=" " * len(head))


def plural(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_few(names: Sequence[object], shown: int = 5, left_out: int = 0) -> str:
    """The first of some names, and how many more there are; `left_out` of them are not in the sequence."""
    more = len(names[shown:]) + left_out
    return ", ".join(map(str, names[:shown])) + (f" and {more} more" if more else "")


def printable(name: str) -> str:
    """The name of a file on one line: it may contain anything."""
    return name if name.isprintable() else ascii(name)[1:-1]


def commands(rows: Sequence[tuple[str, str]]) -> str:
    """Commands to type, with notes beside them, or above them where a line would become too long."""
    column = max((len(words) for words, note in rows if note), default=0)
    beside = [f"  {words:<{column}}  # {note}" if note else f"  {words}" for words, note in rows]
    if max(map(len, beside), default=0) <= columns():
        return "\n".join(beside)
    return "\n".join(f"  # {note}\n  {words}" if note else f"  {words}" for words, note in rows)


def slug(sentence: str) -> str:
    """A name for a file or a branch, made from a sentence."""
    # accents go, other alphabets stay
    apart = unicodedata.normalize("NFKD", sentence.casefold())
    plain = unicodedata.normalize("NFC", "".join(letter for letter in apart if not unicodedata.combining(letter)))
    name = ""
    for word in re.findall(r"[^\W_]+", plain):
        longer = f"{name}-{word}" if name else word[:_LONGEST_SLUG]
        if len(longer) > _LONGEST_SLUG:
            break
        name = longer
    return name or "task"


def without_password(url: str) -> str:
    """The address of a database as it may be shown."""
    scheme, _, rest = url.partition("://")
    place = rest.partition("?")[0].rpartition("@")[2]  # a password may also be among what follows the question mark
    return f"{scheme}://{place}" if url else ""
