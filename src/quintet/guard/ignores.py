"""Ignore rules as one list, so that a later scan can follow those of a snapshot and not those in the tree.

Git reads `.gitignore` files while it walks the tree, which lets whoever writes one there hide files. Written into
one list, with each pattern tied to the folder of its file, the same rules can be given to git from outside.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from quintet import files
from quintet.layout import GITIGNORE

_MARK: Final = b"\xef\xbb\xbf"
_SPECIAL: Final = re.compile(rb"([*?\[\]\\ ])")


def rules(top: Path, sources: Iterable[str], shared: Iterable[Path]) -> bytes:
    """All patterns, the weakest first: files for the whole repository, then `.gitignore` files from the top down."""
    lines = [_read(path) for path in shared]
    for source in sorted(sources, key=lambda name: (name.count("/"), name)):
        folder = os.fsencode(source.removesuffix(GITIGNORE))
        for line in _read(top / source, top).split(b"\n"):
            lines.append(tied(line, folder) if folder else line)
    return b"\n".join(lines) + b"\n"


def tied(line: bytes, folder: bytes) -> bytes:
    """A pattern from the `.gitignore` of a folder (which ends with a slash), as it would be written at the top."""
    negated, pattern = (b"!", line[1:]) if line.startswith(b"!") else (b"", line)
    plain = pattern.rstrip(b"\r\t ")
    if plain in (b"", b"/") or line.startswith(b"#"):
        return b""
    anywhere = b"" if b"/" in plain[:-1] else b"**/"
    return negated + b"/" + literal(folder) + anywhere + pattern.removeprefix(b"/")


def literal(path: bytes) -> bytes:
    """A path as a pattern that matches nothing else."""
    return _SPECIAL.sub(rb"\\\1", path)


def _read(path: Path, below: Path | None = None) -> bytes:
    """The bytes of a file; nothing where there is none. As in git, a `.gitignore` that is a link does not count."""
    try:
        with files.reading(path, below) as file:
            return file.read().removeprefix(_MARK)
    except OSError:
        return b""
