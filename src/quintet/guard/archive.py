"""What an undo takes back, kept for people: a patch that `git apply` takes, and a bundle of an agent's commits."""

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from quintet import files, git
from quintet.errors import GitError
from quintet.guard.changes import Area, Change
from quintet.guard.snapshot import Snapshot
from quintet.guard.store import Entry, Store
from quintet.prose import printable

_SECONDS: Final = 300.0


def keep(changes: Sequence[Change], before: Snapshot, store: Store, archive: Path) -> tuple[list[Path], list[str]]:
    """Write the patch and what goes beside it; the files that were made, and what could not be kept.

    Beside `NAME.patch`: `NAME.git.patch` for changes of the repository's own files, `NAME.bundle` for commits.
    """
    for name in ("patch", "undone"):  # a lock that a killed git has left there would stop the next one
        shutil.rmtree(store.git / "refs" / name, ignore_errors=True)
    made, missing, tree = [archive], [], Path(before.place.tree)
    _patch([change for change in changes if change.area is Area.FILE], changes, store, archive, tree)
    if own := [change for change in changes if change.area is Area.GIT]:
        made.append(archive.with_suffix(".git.patch"))
        _patch(own, own, store, made[-1], tree)
    try:
        made += _bundle(changes, before, store, archive.with_suffix(".bundle"))
    except GitError as error:
        missing.append(f"the commits that were taken back are in no bundle: {error}")
    return made, missing


def _patch(of: Sequence[Change], all_of: Sequence[Change], store: Store, target: Path, tree: Path) -> None:
    """A patch from before to after, headed by a list of all changes: not every one can be said in a patch."""
    with tempfile.TemporaryFile(dir=store.folder) as stream:
        for side in ("before", "after"):
            entries = {change.name: getattr(change, side) for change in of}
            _commit(side, entries, store, stream)
        stream.seek(0)
        env = {"GIT_DIR": str(store.git)}
        git.run(store.git, "fast-import", "--quiet", "--force", feed=stream, env=env, seconds=_SECONDS)
    with files.replacing(target, tree, durable=True) as file:
        file.write("".join(f"{_line(change)}\n" for change in all_of).encode("utf-8", "surrogateescape") + b"\n")
        file.flush()
        sides = ("refs/patch/before", "refs/patch/after")
        form = ("-p", "-r", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        git.run(store.git, "diff-tree", *form, *sides, to=file, env=env, seconds=_SECONDS)


def _line(change: Change) -> str:
    name = printable(change.name)
    if change.kind == "mode" and isinstance(change.before, Entry) and isinstance(change.after, Entry):
        return f"# mode {stat.S_IMODE(change.before.mode):04o} -> {stat.S_IMODE(change.after.mode):04o} {name}"
    values = f": {change.before} -> {change.after}" if change.area in (Area.REF, Area.HEAD, Area.INDEX) else ""
    return f"# {change.area} {change.kind} {name}{values}".replace("\n", " / ")


def _commit(side: str, entries: dict[str, Entry | None], store: Store, stream: IO[bytes]) -> None:
    """A commit of these files, in the language of `git fast-import`."""
    kept = {name: entry for name, entry in entries.items() if entry and entry.digest}
    for number, entry in enumerate(kept.values(), 1):
        stream.write(b"blob\nmark :%d\ndata %d\n" % (number, entry.size))
        store.write_to(entry, stream)
        stream.write(b"\n")
    stream.write(b"commit refs/patch/%s\ncommitter quintet <> 0 +0000\ndata 0\ndeleteall\n" % side.encode())
    for number, (name, entry) in enumerate(kept.items(), 1):
        mode = "120000" if stat.S_ISLNK(entry.mode) else "100755" if entry.mode & stat.S_IXUSR else "100644"
        stream.write(b"M %s :%d %s\n" % (mode.encode(), number, _quoted(name)))


def _quoted(name: str) -> bytes:
    special = b'"\\\n'
    return b'"' + b"".join(b"\\%03o" % byte if byte in special else bytes([byte]) for byte in os.fsencode(name)) + b'"'


def _bundle(changes: Sequence[Change], before: Snapshot, store: Store, target: Path) -> list[Path]:
    """A bundle of the commits that only the changed refs and HEAD have; no file where there are none."""
    ends = {
        change.name: change.after.rpartition(" ")[2]
        for change in changes
        if change.area in (Area.REF, Area.HEAD) and isinstance(change.after, str) and not change.after.endswith(" ")
    }
    ends = {name: commit for name, commit in ends.items() if not commit.startswith("refs/")}
    if not ends:
        return []
    env = {
        "GIT_DIR": str(store.git),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(Path(before.place.common, "objects")),
        "GIT_SHALLOW_FILE": str(Path(before.place.common, "shallow")),
    }
    known = [f"^{commit}" for commit in {*(before.refs or {}).values(), before.head} if not commit.startswith("ref:")]
    feed = "\n".join([*known, *ends.values(), ""]).encode()
    words = ("rev-list", "--objects", "--max-count=1", "--ignore-missing", "--stdin")
    if not git.run(store.git, *words, feed=feed, env=env, seconds=_SECONDS).out:
        return []
    names = {name: f"refs/undone/{name.removeprefix('refs/')}" for name in ends}
    lines = "".join(f"update {names[name]} {commit}\n" for name, commit in ends.items())
    git.run(store.git, "update-ref", "--stdin", feed=lines.encode(), env=env)
    try:
        feed = "\n".join([*known, *names.values(), ""]).encode()
        with files.replacing(target, Path(before.place.tree), durable=True) as file:
            git.run(
                store.git, "bundle", "create", "--quiet", "-", "--stdin", feed=feed, to=file, env=env, seconds=_SECONDS
            )
    finally:
        lines = "".join(f"delete {name}\n" for name in names.values())
        git.run(store.git, "update-ref", "--stdin", feed=lines.encode(), env=env)
    return [target]
