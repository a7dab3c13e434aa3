"""Finds and removes what old runs have left behind. A run that is running, or can be resumed, loses nothing."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import QuintetError, RunError, ServerError
from quintet.layout import DISCOVERY, LONGEST_WORD, TMP
from quintet.loop.decide.state import Status
from quintet.loop.record.lock import worker
from quintet.loop.record.run_record import RunRecord, projects_of_records, recorded
from quintet.loop.record.saved_state import load_project_state
from quintet.loop.record.state_file import state_file_of
from quintet.server.names import run_id_of
from quintet.server.state_folder import PROJECT, StateFolder
from quintet.server.terminal.direct_access import TerminalRow, end_session, is_dead_socket, list_terminals
from quintet.watch.runs.folders import read_run, run_folders
from quintet.watch.runs.model import FAIL, PASS

YOUNG_SECONDS: Final = 3600.0
"""files that are younger may belong to a terminal that is being started"""
MONTH_SECONDS: Final = 30 * 86_400.0
"""files of an unknown run that are older are not needed any more"""


@dataclass(frozen=True)
class Leftover:
    """A file, a folder or a session that is not needed any more."""

    what: str
    where: str
    remove: Callable[[], None]


def terminal_leftovers(now: float | None = None) -> Iterator[Leftover]:
    """Dead sockets, and the folders of ended terminals that no run can be resumed with."""
    state_folder, now = StateFolder(), time.time() if now is None else now
    gone = [path for path in sorted(state_folder.sockets.iterdir()) if _is_old(path, now) and is_dead_socket(path)]
    for path in gone:
        yield Leftover("a dead socket", str(path), partial(path.unlink, missing_ok=True))
    for folder in sorted(state_folder.terminals.iterdir()):
        socket = state_folder.socket(folder.name)
        if (socket in gone or not socket.exists()) and _is_unused(folder, now):
            remove = partial(_remove_terminals, folder, socket, now)
            yield Leftover("the folder of ended terminals", str(folder), remove)


def _is_unused(folder: Path, now: float) -> bool:
    """Whether no run needs the folder of some terminals; a resumed run finds its conversations there."""
    inner = [folder, *(folder.iterdir() if folder.is_dir() else ())]
    if not all(_is_old(path, now) for path in inner):
        return False
    named = next((path / PROJECT for path in inner if (path / PROJECT).is_file()), None)
    run = run_id_of(folder.name)
    if named is None or not run:
        return all(_is_old(path, now, MONTH_SECONDS) for path in inner)
    wd = Path(named.read_text(encoding="utf-8", errors="surrogateescape"))
    saved = load_project_state(wd)
    is_forgotten = not recorded(wd / TMP / run).exists() and not (saved and saved.run_id == run) and not worker(wd)
    return is_forgotten or bool(ended_reason(folder.name, wd))


def server_file_leftovers(wd: Path) -> Iterator[Leftover]:
    """The file in which a server names its address, where that server has been killed."""
    path = wd / DISCOVERY
    try:
        pid = json.loads(files.read(path, LONGEST_WORD, wd)).get("pid")
        os.kill(pid, 0)
    except ProcessLookupError:
        yield Leftover("the file of a server that has ended", str(path), partial(path.unlink, missing_ok=True))
    except (OSError, ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        return


def sessions_of_ended_runs() -> Iterator[Leftover]:
    """Terminals that are still open although their run has ended, or another one has begun since."""
    first: dict[str, TerminalRow] = {}
    for row in list_terminals():
        first.setdefault(row.session, row)
    for name, row in first.items():
        if not row.unresponsive and (why := ended_reason(name, Path(row.cwd))):
            yield Leftover(f"terminals of a run that {why}", f"{name} ({row.cwd})", partial(_stop, name, Path(row.cwd)))


def ended_reason(session: str, wd: Path) -> str:
    """Why the run of a session cannot go on; empty where it can, or where that is not known."""
    run = run_id_of(session)
    if not run:
        return ""
    if not wd.is_dir():
        return "has no project any more"
    folder = recorded(wd / TMP / run)
    status = read_run(wd / TMP / run).status if folder.is_dir() else ""
    if status in (PASS, FAIL):
        return f"ended with {status}"
    saved = load_project_state(wd)
    return "was left behind by a newer one" if saved and saved.run_id and saved.run_id != run else ""


def old_run_folders(wd: Path, keep: int) -> Iterator[Leftover]:
    """The folders of a project's runs, without the newest ones and one that can be resumed."""
    if who := worker(wd):
        raise RunError(f"{wd}: a run is at work here ({who}); its folders are left alone")
    saved = load_project_state(wd)
    current = saved.run_id if saved and saved.final_status is Status.RUNNING else ""
    for folder in run_folders(wd)[keep:]:
        if folder.name != current:
            yield Leftover("the folder of an old run", str(folder), partial(_remove_run, wd, folder))


def records_without_project(now: float | None = None) -> Iterator[Leftover]:
    """The records of runs whose project has been gone for a month, as far as anybody can tell."""
    now = time.time() if now is None else now
    for folder, wd in projects_of_records().items():
        if not wd.exists() and _is_old(folder, now, MONTH_SECONDS):
            yield Leftover(
                "the record of a run that has no project any more", str(folder), partial(_remove_folder, folder)
            )


def _is_old(path: Path, now: float, seconds: float | None = None) -> bool:
    try:
        return now - path.lstat().st_mtime > (YOUNG_SECONDS if seconds is None else seconds)
    except OSError:
        return False


def _stop(session: str, wd: Path) -> None:
    if ended_reason(session, wd):  # checked again: it may have been resumed meanwhile
        end_session(session)


def _remove_terminals(folder: Path, socket: Path, now: float) -> None:
    if (not socket.exists() or is_dead_socket(socket)) and _is_unused(folder, now):  # checked again, as above
        _remove_folder(folder)


def _remove_run(wd: Path, folder: Path) -> None:
    """Remove a run's folder, end its terminals, and remove its state, which the next run would move into the folder."""
    if worker(wd):
        raise RunError(f"{folder}: a run has been started here; its folders are left alone")
    for name in StateFolder().session_names():
        if run_id_of(name) == folder.name:
            with suppress(ServerError):  # nothing of it was left
                end_session(name)
    record = RunRecord(wd, folder.name)
    saved = load_project_state(wd)
    for place in (folder, *([record.folder] if record.is_known else [])):
        if place.exists():
            _remove_folder(place)
    if saved and saved.run_id == folder.name and saved.final_status is not Status.RUNNING:
        state_file_of(wd).unlink(missing_ok=True)


def _remove_folder(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise RunError(f"{error.filename or folder}: cannot be removed ({error.strerror})") from None


def count_leftovers(wd: Path) -> tuple[int, int]:
    """How many leftovers there are: files and folders, and sessions of ended runs."""
    try:
        return len([*terminal_leftovers(), *server_file_leftovers(wd), *records_without_project()]), len(
            list(sessions_of_ended_runs())
        )
    except (OSError, QuintetError):
        return 0, 0
