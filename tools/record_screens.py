"""Records labelled screens of a real release, for the readers' tests.

    python -m tools.record_screens codex 0.166.0 DIR [COLSxROWS ...]
    python -m tools.record_screens claude 2.1.325 DIR [COLSxROWS ...]
    python -m tools.screens pack DIR

The program runs in a tmux, a home and an environment of its own, against the scripted model. The labels come from
what the recorder knows (which request is open, which command is out, which process was killed), never from the
screen; a frame is kept only when its label was true before and after it was taken.
"""

import json
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.recording.cli import CLIS
from tools.recording.scenarios import record

SIZES = ("80x24", "120x40", "200x50")


def record_release(cli: str, version: str, folder: Path, sizes: Sequence[str]) -> Path:
    """Writes DIR/CLI-VERSION.jsonl, one line for each frame."""
    make = CLIS[cli]
    program = make.install(version)
    pairs = [tuple(int(number) for number in size.split("x")) for size in sizes]
    with ThreadPoolExecutor(len(pairs)) as pool:
        jobs = [pool.submit(record, make(version, program), cols, rows) for cols, rows in pairs]
        frames = [frame for job in jobs for frame in job.result()]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{cli}-{version}.jsonl"
    file.write_text("".join(f"{json.dumps(frame, ensure_ascii=False)}\n" for frame in frames))
    return file


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case [cli, version, folder, *sizes] if cli in CLIS and all(re.fullmatch(r"\d+x\d+", size) for size in sizes):
            print(record_release(cli, version, Path(folder), sizes or SIZES))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
