"""How much later a run in a worktree starts than one in the project: `python -m tools.bench_workspace [FILES...]`.

The time is that from the command to its first prompt, with a terminal server that answers at once; both ways in turn.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from tests.stub.replies import SMOOTH, TASK
from tests.stub.server import Stub, Turn, serving
from tools.bench_guard import make

SIZES: Final = (10, 10_000)
TIMES: Final = 5
DEADLINE: Final = 60.0


def seconds_to_first_prompt(folder: Path, mode: str) -> float:
    """From the start of `quintet run` to its first prompt."""
    stub = Stub()
    stub.script = {role: [Turn(work=DEADLINE)] for role in SMOOTH}
    with serving(stub):
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "API": stub.url,
            "PROMPT": TASK,
            "WD": str(folder / "project"),
            "WORKSPACE": mode,
            "RESUME": "0",
        }
        begun = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "quintet", "run"], env=env, stdout=subprocess.DEVNULL)
        try:
            while not stub.prompts:
                if process.poll() is not None or time.monotonic() - begun > DEADLINE:
                    raise RuntimeError("the run did not send a prompt")
                time.sleep(0.002)
            return time.monotonic() - begun
        finally:
            process.kill()
            process.wait()


def main() -> None:
    print("   files    in the project    in a worktree    later by")
    for size in [int(word) for word in sys.argv[1:]] or SIZES:
        folder = Path(tempfile.mkdtemp(prefix="bench-workspace-"))
        try:
            make(folder / "project", size)
            found: dict[str, list[float]] = {"tree": [], "worktree": []}
            for _ in range(TIMES):
                for mode, taken in found.items():
                    taken.append(seconds_to_first_prompt(folder, mode))
            tree, worktree = (median(taken) for taken in found.values())
            print(f"{size:>8} {tree:>15.2f} s {worktree:>14.2f} s {worktree - tree:>9.2f} s", flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
