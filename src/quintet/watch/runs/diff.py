"""The diff of a run: from its start commit to the work tree, as a patch that git made."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import files, git
from quintet.errors import GitError
from quintet.layout import CHANGES_PATCH, NOT_TMP
from quintet.loop.record.run_record import recorded
from quintet.prose import first_few
from quintet.watch.runs.changes import is_over, new_files, readable, start_unknown
from quintet.watch.runs.formatting import one_line
from quintet.watch.runs.model import Run
from quintet.watch.runs.patches import parse_file, split_patch

MOST_BYTES: Final = 5_000_000
_MOST_NOTE: Final = 10_000
_MOST_READ: Final = 50_000_000
_LARGEST: Final = 1_000_000
"""bytes of a file that is shown; git treats a larger one as binary"""
_HEADER: Final = 300
"""bytes that a file takes in a patch beside its content, about"""
_MARK: Final = b"# "
"""begins a line of the note, which stands before the first file, where git apply ignores it"""
_FORM: Final = (
    *("--patch", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"),
)
_CONFIG: Final = {
    "core.bigFileThreshold": str(_LARGEST),
    "core.splitIndex": "false",
    "diff.suppressBlankEmpty": "false",
}


@dataclass(frozen=True)
class Diff:
    """What a run has changed, as a patch."""

    patch: bytes = b""
    note: str = ""
    """what is not in it, or why there is none"""


def diff_of(folder: Path, run: Run) -> Diff:
    """The diff of a run: that saved at its end, else the one there is now."""
    if is_over(run):
        with suppress(OSError):
            return _read(files.read(recorded(folder) / CHANGES_PATCH, MOST_BYTES + _MOST_NOTE))
    return diff_now(folder.parents[1], run)


def save_diff(folder: Path, found: Diff) -> None:
    """Write it into the run's folder, because the work tree goes on changing after the run."""
    note = b"".join(_MARK + line.encode() + b"\n" for line in filter(None, [found.note]))
    for place in {recorded(folder), folder}:
        files.write(place / CHANGES_PATCH, note + found.patch, folder.parents[1])


def diff_now(tree: Path, run: Run) -> Diff:
    """What is different from the start commit in the work tree as it is now, new files included.

    New files are entered into a copy of the index. The index and the objects of the repository stay as they are.
    """
    if reason := start_unknown(tree, run):
        return Diff(note=reason)
    try:
        with tempfile.TemporaryDirectory(prefix="quintet-diff-") as scratch:
            index = Path(scratch, "index")
            env = {"GIT_INDEX_FILE": str(index), **_config_variables()}
            git.copy_index(tree, index)
            # a file of which only the time is another one would be listed without this
            git.run(tree, "update-index", "-q", "--refresh", env=env, check=False)
            left_out = _add_new_files(tree, env)
            with tempfile.TemporaryFile(dir=scratch) as out:
                git.run(tree, "diff-index", *_FORM, run.start_commit, "--", ".", NOT_TMP, env=env, to=out)
                out.seek(0)
                return _within_bounds(out.read(_MOST_READ), left_out, cut=bool(out.read(1)))
    except (GitError, OSError) as error:
        return Diff(note=f"What has changed is not known: {one_line(str(error))}")


def _config_variables() -> dict[str, str]:
    """Settings of git for its child processes too, as variables."""
    found = {"GIT_CONFIG_COUNT": str(len(_CONFIG))}
    for number, (name, value) in enumerate(_CONFIG.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _add_new_files(tree: Path, env: Mapping[str, str]) -> list[str]:
    """Enter the files that git does not know into the index that `env` names; returns those that find no room."""
    names = new_files(tree)
    empty = git.run(tree, "hash-object", "--stdin", env=env).text if names else ""
    prefix = git.run(tree, "rev-parse", "--show-prefix").text
    left_out, entries, room = [], [], MOST_BYTES
    for name in names:
        size = _size(tree / name)
        cost = _HEADER + (size if size <= _LARGEST else 0)
        if name.endswith("/") or cost > room:  # a folder is a repository of its own
            left_out.append(name)
        else:
            # an entry needs some hash; git looks at the file itself when it compares
            entries.append(f"100644 {empty} 0\t{prefix}{name}\0")
            room -= cost
    if entries:
        git.run(tree, "update-index", "-z", "--index-info", feed=os.fsencode("".join(entries)), env=env)
    return left_out


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _within_bounds(patch: bytes, left_out: list[str], *, cut: bool) -> Diff:
    """The files of a patch that fit, and a note that names the others."""
    parts = split_patch(patch)[1]
    torn = parts.pop() if cut and parts else b""
    kept, room = [], MOST_BYTES
    nested = [readable(name) for name in left_out if name.endswith("/")]
    large = [readable(name) for name in left_out if not name.endswith("/")]
    for part in parts:
        if len(part) > room:
            large.append(_path(part))
        else:
            kept.append(part)
            room -= len(part)
    if torn:
        large.append(f"{_path(torn)} and all files after it")
    notes = {"a repository of its own": nested, "the diff would be too large": large}
    note = " ".join(f"Left out ({why}): {first_few(names)}." for why, names in notes.items() if names)
    return Diff(b"".join(kept), one_line(note)[: _MOST_NOTE // 4])


def _path(part: bytes) -> str:
    return parse_file(part.partition(b"\n@@ ")[0]).path


def _read(data: bytes) -> Diff:
    head, parts = split_patch(data)
    lines = [line.removeprefix(_MARK) for line in head.split(b"\n") if line.startswith(_MARK)]
    return Diff(b"".join(parts), one_line(b" ".join(lines).decode("utf-8", "replace")))
