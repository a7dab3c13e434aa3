"""`quintet watch`: a run that was started elsewhere, live."""

import os
import time
from pathlib import Path
from typing import Final

from quintet.config import Settings, load_settings
from quintet.errors import ConfigError
from quintet.watch.console.console import open_console
from quintet.watch.runs.folders import find_run, follow, with_process_status
from quintet.watch.runs.model import GONE, RUNNING
from quintet.watch.runs.summary import task_title

POLL_SECONDS: Final = 0.25
INTERRUPTED: Final = 130


def watch(run: str | None, wd: Path, plain: bool, as_json: bool) -> int:
    """Show the events of a run as they come, until it ends."""
    folder = find_run(wd, run)
    tail = follow(folder)
    try:
        with open_console(
            folder.parents[1], plain=plain, as_json=as_json, progress_seconds=_progress_seconds(wd)
        ) as show:
            show.title(task_title(folder, folder.name))
            while True:
                # asked before the journal is read, so that what the run wrote last is not missed
                seen = with_process_status(folder, tail.run)
                events = tail.read_new()
                for event in events:
                    show(event)
                if tail.run.status != RUNNING:
                    return 0
                if seen.status == GONE and not events:
                    show.gone()
                    return 0
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        return INTERRUPTED


def _progress_seconds(wd: Path) -> float:
    """The project's setting; settings that cannot be read keep nobody from watching."""
    try:
        return load_settings(None, os.environ, {"wd": str(wd)}, Path.cwd()).settings.progress_seconds
    except ConfigError:
        return Settings.progress_seconds
