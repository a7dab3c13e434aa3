"""Filling a composer through the program's own "open in editor" key, for text that a paste would change.

The terminal's `VISUAL` is a script of ours. While a text is offered to it, the script writes that text as if the user
had typed it; at any other time it starts the user's own editor. An offer is taken or withdrawn by renaming it, so that
it cannot be both.
"""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from quintet import files

INPUT: Final = "input"
"""the file in a terminal's folder with what is being typed; the server writes it"""
SCRIPT: Final = "editor.sh"
_OFFERED, _TAKEN, _WITHDRAWN = "editor.offered", "editor.taken", "editor.withdrawn"


def command(folder: Path) -> str | None:
    """What `VISUAL` has to be; None where programs would take a folder's name apart at its blanks."""
    path = str(folder / SCRIPT)
    return None if any(letter.isspace() for letter in path) else f"/bin/sh {path}"


def script(folder: Path, env: Mapping[str, str]) -> str:
    """The text of the script."""
    own = env.get("VISUAL") or env.get("EDITOR") or "vi"
    offered, taken, text = (shlex.quote(str(folder / name)) for name in (_OFFERED, _TAKEN, INPUT))
    return f"""\
for last; do :; done
mv -f {offered} {taken} 2>/dev/null && exec cat {text} > "$last"
exec {own} "$@"
"""


def is_usable(folder: Path) -> bool:
    """Whether the program has such an editor, and has not let an offer pass."""
    return (folder / SCRIPT).exists() and not (folder / _WITHDRAWN).exists()


def offer(folder: Path) -> None:
    """The next time that the program opens its editor, it gets the text."""
    (folder / _TAKEN).unlink(missing_ok=True)
    files.write(folder / _OFFERED, b"")


def is_taken(folder: Path) -> bool:
    """Whether the program has come for it."""
    return (folder / _TAKEN).exists()


def withdraw(folder: Path) -> bool:
    """Take the offer back, and make no other; False where the program has come for it after all."""
    with suppress(FileNotFoundError):
        (folder / _OFFERED).rename(folder / _WITHDRAWN)
    return not is_taken(folder)
