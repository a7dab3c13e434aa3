"""`quintet watch`: a run that was started elsewhere, live."""

import time
from pathlib import Path
from typing import Final

from quintet.config import Settings
from quintet.layout import JOURNAL
from quintet.watch.console.console import showing
from quintet.watch.runs.folders import Tail, as_seen, find_run
from quintet.watch.runs.model import GONE, RUNNING
from quintet.watch.runs.summary import task_title

POLL_SECONDS: Final = 0.25
INTERRUPTED: Final = 130


def watch(run: str | None, wd: Path, plain: bool, as_json: bool) -> int:
    """Show the events of a run as they come, until it ends."""
    folder = find_run(wd, run)
    tail = Tail(folder / JOURNAL)
    try:
        with showing(wd, plain=plain, as_json=as_json, progress_seconds=Settings().progress_seconds) as show:
            show.title(task_title(folder, folder.name))
            while True:
                # asked before the journal is read, so that what the run wrote last is not missed
                seen = as_seen(folder, tail.run)
                for event in tail.news():
                    show(event)
                if tail.run.status != RUNNING:
                    return 0
                if seen.status == GONE and seen.events == tail.run.events:
                    show.gone()
                    return 0
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return INTERRUPTED
