"""A patch of git as values: its files with their lines, and as much of them as a page shows. Text in, value out."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

MOST_FILES: Final = 500
MOST_LINES: Final = 5000
"""lines that a page shows of all files together"""
MOST_OF_FILE: Final = 1000
OPEN_LINES: Final = 80
"""lines of a file that a page shows unfolded"""
OPEN_IN_ALL: Final = 400
"""lines that a page shows unfolded of all files together"""
LONGEST: Final = 1000
"""characters of a line that a page shows"""
HUNK: Final = "@"
"""the sign of the line that begins a hunk"""
_SIDES: Final = " +-"
_KINDS: Final = {" ": "same", "+": "added", "-": "removed", HUNK: "hunk", "\\": "remark"}
_BEGIN = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@ ?(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:([0-7]{3})|(.))", re.DOTALL)
_LETTERS: Final = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_MODES: Final = {"120000": "symbolic link", "160000": "submodule"}
_NOT_SHOWN: Final = "not shown: binary or very large"


class DiffLine(NamedTuple):
    """A line of a patch, with its numbers in the old and in the new file."""

    sign: str
    """blank, `+`, `-`, a backslash for what git remarks, or HUNK for the head of a hunk"""
    old: int | None
    new: int | None
    text: str

    @property
    def kind(self) -> str:
        """Its class on a page."""
        return _KINDS[self.sign]

    @property
    def shown(self) -> str:
        return f"{self.sign}{self.text}" if self.sign in _SIDES else self.text


@dataclass(frozen=True)
class FileDiff:
    """What a patch does to a file."""

    path: str
    kind: str = "changed"
    old_path: str = ""
    """the name before, where it was renamed"""
    note: str = ""
    """what lines do not show: another mode, a binary file, a link"""
    lines: tuple[DiffLine, ...] = ()

    @property
    def added(self) -> int:
        return sum(line.sign == "+" for line in self.lines)

    @property
    def removed(self) -> int:
        return sum(line.sign == "-" for line in self.lines)

    @property
    def title(self) -> str:
        return f"{self.old_path} → {self.path}" if self.old_path else self.path

    @property
    def words(self) -> str:
        """What is to be said of the file beside its lines."""
        return ", ".join(filter(None, ("" if self.kind == "changed" else self.kind, self.note)))


@dataclass(frozen=True)
class ShownFile:
    """A file as a page shows it: not more of it than people read there."""

    file: FileDiff
    lines: tuple[DiffLine, ...]
    is_open: bool
    """whether it is short enough to be unfolded from the start"""

    @property
    def left_out(self) -> int:
        """How many lines are not shown."""
        return len(self.file.lines) - len(self.lines)


def split_patch(patch: bytes) -> tuple[bytes, list[bytes]]:
    """What stands before the first file, and the part of each file."""
    head, *parts = _BEGIN.split(patch)
    return (b"", [head, *parts]) if head.startswith(b"diff --git ") else (head, parts)


def parse_patch(patch: bytes) -> tuple[FileDiff, ...]:
    """The files of a patch. One that is torn, or that an agent wrote, gives some value and never an error."""
    return tuple(map(parse_file, split_patch(patch)[1]))


def parse_file(part: bytes) -> FileDiff:
    """The part of one file."""
    # every line of a hunk begins with its sign, so that none can look like a header
    lines = part.decode("utf-8", "replace").removesuffix("\n").split("\n")
    end = next((number for number, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    header = lines[:end]
    kind, old_path, path = _names(header)
    return FileDiff(path, kind, old_path, _note(header), tuple(_body(lines[end:])))


def show(files: Sequence[FileDiff]) -> tuple[list[ShownFile], int]:
    """As much of some files as a page shows, and how many more files there are."""
    room, open_room = MOST_LINES, OPEN_IN_ALL
    shown = []
    for file in files[:MOST_FILES]:
        lines = file.lines[: min(room, MOST_OF_FILE)]
        room -= len(lines)
        is_open = 0 < len(file.lines) <= min(OPEN_LINES, open_room)
        open_room -= len(lines) if is_open else 0
        shown.append(ShownFile(file, tuple(_cut(line) for line in lines), is_open))
    return shown, max(len(files) - MOST_FILES, 0)


def visible_line_end(line: str) -> str:
    """A line with a carriage return at its end as git and editors show it."""
    return f"{line[:-1]}^M" if line.endswith("\r") else line


def _cut(line: DiffLine) -> DiffLine:
    more = len(line.text) - LONGEST
    return line._replace(text=f"{line.text[:LONGEST]} … ({more} more characters)") if more > 0 else line


def _names(header: Sequence[str]) -> tuple[str, str, str]:
    """What happened to a file, its name before where it was renamed, and its name."""
    kind, renamed, names = "changed", "", {}
    for line in header:
        word, _, rest = line.partition(" ")
        if line.startswith(("new file mode ", "deleted file mode ")):
            kind = word
        elif line.startswith("rename from "):
            kind, renamed = "renamed", _unquoted(line.removeprefix("rename from "))
        elif line.startswith("rename to "):
            names["to"] = _unquoted(line.removeprefix("rename to "))
        elif word in ("+++", "---") and rest != "/dev/null":
            names[word] = _unquoted(rest.removesuffix("\t"))[2:]
    # without any of these lines both names are the same
    both = header[0].removeprefix("diff --git ") if header else ""
    path = next((names[key] for key in ("to", "+++", "---") if key in names), _unquoted(both[: len(both) // 2])[2:])
    return kind, renamed, path


def _note(header: Sequence[str]) -> str:
    values = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in header}
    index = next((line.split(" ") for line in header if line.startswith("index ")), [])
    mode = values.get("new file mode") or values.get("deleted file mode") or (index[2] if len(index) > 2 else "")  # noqa: PLR2004
    notes = [_MODES.get(mode, "")]
    if "old mode" in values and "new mode" in values:
        notes.append(f"mode {values['old mode']} → {values['new mode']}")
    if any(line.startswith(("Binary files ", "GIT binary patch")) for line in header):
        notes.append(_NOT_SHOWN)
    return ", ".join(filter(None, notes))


def _body(lines: Iterable[str]) -> Iterator[DiffLine]:
    old = new = 0
    for line in lines:
        sign, text = line[:1] or " ", line[1:]
        if found := _HUNK.match(line):
            old, new = int(found[1]), int(found[2])
            yield DiffLine(HUNK, None, None, visible_line_end(line))
        elif sign == " ":
            yield DiffLine(sign, old, new, text.removesuffix("\r"))
            old, new = old + 1, new + 1
        elif sign == "-":
            yield DiffLine(sign, old, None, visible_line_end(text))
            old += 1
        elif sign == "+":
            yield DiffLine(sign, None, new, visible_line_end(text))
            new += 1
        elif sign == "\\":
            yield DiffLine(sign, None, None, text.strip())


def _unquoted(name: str) -> str:
    """A file name as git writes it: in quotes, where it has characters that would end a line or a name."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name

    def letter(found: re.Match[str]) -> str:
        return chr(int(found[1], 8)) if found[1] else _LETTERS.get(found[2], found[2])

    return _ESCAPED.sub(letter, name[1:-1])
