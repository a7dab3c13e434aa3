"""What the guard costs in a turn, beside `git status` and `git stash create` on the same tree.

`python tools/bench_guard.py` measures 1,000, 10,000 and 100,000 files; `python tools/bench_guard.py 1000` one size.
A turn is what a run adds to each of its turns: the snapshot before the prompt, and the scan and comparison after it.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from quintet.guard import Snapshot, Store, compare, look, take

SIZES = (1_000, 10_000, 100_000)
CHANGED = 100
TIMES = 5
FILES_PER_FOLDER = 50
PROTECT = ("quintet.json", ".quintet/**")


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    print("   files                   first snapshot  compare     turn  git status  git stash create  (seconds)")
    for size in sizes:
        folder = Path(tempfile.mkdtemp(prefix="bench-guard-"))
        try:
            measure(folder, size)
        finally:
            shutil.rmtree(folder)


def measure(folder: Path, size: int) -> None:
    tree, store = folder / "tree", Store(folder / "store")
    paths = make(tree, size)
    begun = time.perf_counter()
    known = take(tree, store, "turn", PROTECT)
    first = time.perf_counter() - begun
    time.sleep(2.1)  # files that are younger than that are read twice
    known = take(tree, store, "turn", PROTECT, cache=known)
    for label, changed in (("quiet", 0), (f"{CHANGED} changed", CHANGED)):
        rows = [
            turn(tree, store, known, paths[:: max(1, size // CHANGED)][:changed], number) for number in range(TIMES)
        ]
        snapshot, comparison = (median(column) for column in zip(*rows, strict=True))
        status, stash = (timed(tree, "status", "--porcelain"), timed(tree, "stash", "create"))
        parts = (snapshot, comparison, snapshot + comparison)
        shown = "".join(f"{value:>8.3f} " for value in parts)
        print(f"{size:>8} {label:<14} {first:>8.3f} {shown:>9} {status:>10.3f} {stash:>17.3f}", flush=True)
    store.close()


def turn(tree: Path, store: Store, known: Snapshot, changed: list[Path], number: int) -> tuple[float, float]:
    begun = time.perf_counter()
    before = take(tree, store, "turn", PROTECT, cache=known)
    taken = time.perf_counter()
    for path in changed:
        path.write_text(f"changed {number} {path}\n")
    began_again = time.perf_counter()
    found = compare(before, look(before, store))
    ended = time.perf_counter()
    assert number or len(found) == len(changed), found[:3]
    return taken - begun, ended - began_again


def make(tree: Path, size: int) -> list[Path]:
    """A repository in which all files are committed."""
    paths = []
    for number in range(size):
        path = (
            tree
            / f"part{number // FILES_PER_FOLDER // 40}"
            / f"folder{number // FILES_PER_FOLDER}"
            / f"file{number}.txt"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {number}\n" * 100)
        paths.append(path)
    (tree / ".gitignore").write_text("build/\n*.o\n")
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    git(tree, "-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "--quiet", "--message", "all")
    git(tree, "repack", "-adq")
    git(tree, "status")
    return paths


def git(tree: Path, *words: str) -> None:
    named = ("-c", "user.name=u", "-c", "user.email=u@localhost")
    subprocess.run(["git", *named, *words], cwd=tree, check=True, capture_output=True)


def timed(tree: Path, *words: str) -> float:
    times = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        git(tree, *words)
        times.append(time.perf_counter() - begun)
    return median(times)


if __name__ == "__main__":
    main()
