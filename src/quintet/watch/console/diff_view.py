"""The diff of a run in a terminal: in git's colours, through the user's pager. Nothing in it can steer the terminal."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from quintet import git
from quintet.prose import plural
from quintet.watch.runs.formatting import printable
from quintet.watch.runs.patches import parse_patch, split_patch, visible_line_end

_DEFAULTS: Final = {"meta": "bold", "frag": "cyan", "old": "red", "new": "green", "context": "", "func": ""}
"""the parts of a diff that git colours, and how by default"""
_SLOTS: Final = {"+": "new", "-": "old", "@": "frag"}
_RESET: Final = "\x1b[m"
_HUNK = re.compile(r"@@ .*? @@")
_NO_COMMAND: Final = 127
_YES: Final = ("true", "yes", "on", "1")
_NO: Final = ("false", "no", "off", "0")

Colours = Mapping[str, str]
"""the escape sequence of each part; none where nothing is to be coloured"""


def git_colours(folder: Path) -> Colours:
    """The colours that git uses in a folder for diffs on a terminal."""
    wanted = git.answer(folder, "config", "--get-colorbool", "color.diff", "true") == "true"
    if not wanted or os.environ.get("NO_COLOR"):
        return {}
    return {
        slot: git.answer(folder, "config", "--get-color", f"color.diff.{slot}", default) or ""
        for slot, default in _DEFAULTS.items()
    }


def patch_lines(patch: bytes, colours: Colours) -> Iterator[str]:
    """The lines of a patch with their colours."""
    for part in split_patch(patch)[1]:
        in_hunk = False
        for line in part.decode("utf-8", "replace").removesuffix("\n").split("\n"):
            if found := _HUNK.match(line):
                in_hunk = True
                yield _painted(found[0], colours, "frag") + _painted(line[found.end() :], colours, "func")
            else:
                yield _painted(line, colours, _SLOTS.get(line[:1], "context") if in_hunk else "meta")


def stat_lines(patch: bytes, colours: Colours) -> list[str]:
    """A line for each file with the number of lines added and removed, and one for all."""
    files = parse_patch(patch)
    counts = [(f"+{file.added}", f"-{file.removed}") for file in files]
    added, removed = (max((len(pair[side]) for pair in counts), default=0) for side in (0, 1))
    lines = [
        f"{_painted(plus.rjust(added), colours, 'new')} {_painted(minus.rjust(removed), colours, 'old')}  "
        f"{printable(file.title).replace(chr(10), '�')}{f'  ({file.words})' if file.words else ''}"
        for file, (plus, minus) in zip(files, counts, strict=True)
    ]
    sums = f"+{sum(file.added for file in files)} -{sum(file.removed for file in files)}"
    return [*lines, f"{plural(len(files), 'file')} changed, {sums}"]


def show_in_pager(folder: Path, text: str) -> None:
    """Show a text in the pager that git uses for diffs in a folder; print it where there is none."""
    data = text.encode(sys.stdout.encoding or "utf-8", "replace")
    command = _pager(folder)
    if command in ("", "cat") or not _page(command, data):
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


def _page(command: str, data: bytes) -> bool:
    """Run a pager until the user leaves it; returns whether there is such a program."""
    # Ctrl-C is for the pager: one that stays must not find the terminal taken by a shell
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        env = {"LESS": "FRX", "LV": "-c", **os.environ}
        with subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=env) as process:  # noqa: S602 - as git does
            process.communicate(data)
        return process.returncode != _NO_COMMAND
    finally:
        signal.signal(signal.SIGINT, before)


def _pager(folder: Path) -> str:
    """The command that git would use, in git's own order; empty where it uses none."""
    own = git.answer(folder, "config", "--get", "pager.diff")
    if own is not None and own.lower() in _NO:
        return ""
    choices = (
        os.environ.get("GIT_PAGER"),
        None if own is None or own.lower() in _YES else own,
        git.answer(folder, "config", "--get", "core.pager"),
        os.environ.get("PAGER"),
        shutil.which("less") and "less",
    )
    return next((choice for choice in choices if choice is not None), "")


def _painted(text: str, colours: Colours, slot: str) -> str:
    shown = printable(visible_line_end(text))
    return f"{colours[slot]}{shown}{_RESET}" if shown and colours.get(slot) else shown
