"""Handing a prompt to the program in a terminal: through its editor key, or by a key that makes it fetch the prompt.

The server leaves the prompt in the terminal's folder, where the program can only read it, and offers it under a new
name. Whoever comes first makes a file of that name in the folder that is the program's own: the program, which then
takes the prompt, or the server, which withdraws it. So it cannot be both.

The terminal's `VISUAL` is a script of ours. While a text is offered to it, the script writes that text as if the user
had typed it; at any other time it starts the user's own editor.
"""

import secrets
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from quintet import files

OWN: Final = "own"
"""the only folder in that of a terminal that the agent's program can write to"""
INPUT: Final = "input"
"""the file in a terminal's folder with what is being typed; the server writes it"""
SCRIPT: Final = "editor.sh"
_OFFERED, _WITHDRAWN, _TAKEN = "offered", "editor.withdrawn", "taken-"
_LONGEST_NAME: Final = 64


def command(folder: Path) -> str | None:
    """What `VISUAL` has to be; None where programs would take a folder's name apart at its blanks."""
    path = str(folder / SCRIPT)
    return None if any(letter.isspace() for letter in path) else f"/bin/sh {path}"


def script(folder: Path, env: Mapping[str, str]) -> str:
    """The text of the script."""
    own = env.get("VISUAL") or env.get("EDITOR") or "vi"
    offered, taken, text = (shlex.quote(str(folder / name)) for name in (_OFFERED, f"{OWN}/{_TAKEN}", INPUT))
    return f"""\
for last; do :; done
{{ read -r name < {offered} && (set -C; : > {taken}"$name"); }} 2>/dev/null && exec cat {text} > "$last"
exec {own} "$@"
"""


def is_usable(folder: Path) -> bool:
    """Whether the program has such an editor, and has not let an offer pass."""
    return (folder / SCRIPT).exists() and not (folder / _WITHDRAWN).exists()


def leave(folder: Path, text: str) -> None:
    """Write down what is being typed."""
    files.write(folder / INPUT, text, folder)


def offer(folder: Path) -> None:
    """The next time that the program opens its editor, or is told to fetch it, it gets the text."""
    files.write(folder / _OFFERED, f"{secrets.token_hex(8)}\n", folder)


def take(folder: Path) -> bool:
    """Take what is offered, as the program; False where nothing is, or where it was taken before."""
    mark = _mark(folder)
    return mark is not None and _make(mark, folder)


def is_waiting(folder: Path) -> bool:
    """Whether something is offered that nobody has taken."""
    mark = _mark(folder)
    return mark is not None and files.look(mark, folder) is None


def is_taken(folder: Path) -> bool:
    """Whether the program has come for it."""
    return _mark(folder) is not None and not is_waiting(folder)


def withdraw(folder: Path) -> bool:
    """Take the offer back, and make no other; False where the program has come for it after all."""
    mark = _mark(folder)
    if mark is not None and not _make(mark, folder):
        return False
    files.write(folder / _WITHDRAWN, b"", folder)
    return True


def clear(folder: Path) -> None:
    """Remove what was typed, and the offer of it."""
    mark = _mark(folder)
    for path in (folder / INPUT, folder / _OFFERED, *([mark] if mark else [])):
        with suppress(OSError):
            files.remove(path, folder)


def _mark(folder: Path) -> Path | None:
    """The file by which an offer is taken; None where there is no offer."""
    try:
        name = files.read(folder / _OFFERED, _LONGEST_NAME, folder).decode("ascii", "replace").strip()
    except OSError:
        return None
    return folder / OWN / f"{_TAKEN}{name}"


def _make(mark: Path, folder: Path) -> bool:
    try:
        files.write_new(mark, b"", folder)
    except FileExistsError:
        return False
    return True
