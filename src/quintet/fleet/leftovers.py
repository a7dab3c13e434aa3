"""Ends and removes what is left here of tasks that go on elsewhere or have ended: `python -m quintet.fleet.leftovers`.

A process of its own, because it needs to know terminals, which a worker does not.
"""

import os
import sys
from pathlib import Path

from quintet import files
from quintet.errors import QuintetError
from quintet.fleet.checkpoint import open_tree_lock, remove_tree
from quintet.setup.stopping import stop_below


def main() -> None:
    """End what works in the folders that standard input names, and remove them."""
    for line in sys.stdin:
        folder = Path(line.rstrip("\n"))
        handle = open_tree_lock(folder.name)
        try:
            if files.try_lock(handle):  # else a slot has got the task in the meantime
                stop_below(folder, lambda _: None)
                remove_tree(folder)
        except QuintetError as error:
            print(f"{folder}: {error}", file=sys.stderr)
        finally:
            os.close(handle)


if __name__ == "__main__":
    main()
