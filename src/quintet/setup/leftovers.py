"""What old runs have left behind, and removing it. A run that is at work, or could go on, loses nothing."""

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
from quintet.errors import QuintetError, RunError, ServerError, StateError
from quintet.layout import DISCOVERY, LONGEST_WORD, STATE_FILE, TMP
from quintet.loop.decide.state import State, Status
from quintet.loop.record.lock import worker
from quintet.loop.record.state_file import load_state
from quintet.server.names import run_id_of
from quintet.server.state_folder import PROJECT, StateFolder
from quintet.server.terminal.direct_access import TerminalRow, end_session, is_dead_socket, list_terminals
from quintet.watch.runs.folders import read_run, run_folders
from quintet.watch.runs.model import FAIL, PASS

YOUNG_SECONDS: Final = 3600.0
"""what is younger may belong to a terminal that is just being started"""
MONTH_SECONDS: Final = 30 * 86_400.0
"""what is older, and of no run that is known, nobody comes back to"""


@dataclass(frozen=True)
class Leftover:
    """One thing that nobody needs any more."""

    what: str
    where: str
    remove: Callable[[], None]


def dead_terminals(now: float | None = None) -> Iterator[Leftover]:
    """Sockets that nobody listens at, and the folders of terminals that are gone and that no run goes on with."""
    state_folder, now = StateFolder(), time.time() if now is None else now
    gone = [path for path in sorted(state_folder.sockets.iterdir()) if _is_old(path, now) and is_dead_socket(path)]
    for path in gone:
        yield Leftover("a dead socket", str(path), partial(path.unlink, missing_ok=True))
    for folder in sorted(state_folder.terminals.iterdir()):
        socket = state_folder.socket(folder.name)
        if (socket in gone or not socket.exists()) and _is_needless(folder, now):
            remove = partial(_remove_terminals, folder, socket, now)
            yield Leftover("the folder of terminals that are gone", str(folder), remove)


def _is_needless(folder: Path, now: float) -> bool:
    """A run that lost its terminals goes on with their conversations, which it finds by their folders."""
    inner = [folder, *(folder.iterdir() if folder.is_dir() else ())]
    if not all(_is_old(path, now) for path in inner):
        return False
    named = next((path / PROJECT for path in inner if (path / PROJECT).is_file()), None)
    run = run_id_of(folder.name)
    if named is None or not run:
        return all(_is_old(path, now, MONTH_SECONDS) for path in inner)
    wd = Path(named.read_text(encoding="utf-8", errors="surrogateescape"))
    saved = _saved(wd)
    is_forgotten = not (wd / TMP / run).exists() and not (saved and saved.run_id == run) and not worker(wd)
    return is_forgotten or bool(why_ended(folder.name, wd))


def dead_word(wd: Path) -> Iterator[Leftover]:
    """The note of a server that died without taking it back."""
    path = wd / DISCOVERY
    try:
        pid = json.loads(files.read(path, LONGEST_WORD, wd)).get("pid")
        os.kill(pid, 0)
    except ProcessLookupError:
        yield Leftover("the note of a server that is gone", str(path), partial(path.unlink, missing_ok=True))
    except (OSError, ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        return


def ended_sessions() -> Iterator[Leftover]:
    """Terminals that live on although their run has ended or was left behind."""
    first: dict[str, TerminalRow] = {}
    for row in list_terminals():
        first.setdefault(row.session, row)
    for name, row in first.items():
        if not row.unresponsive and (why := why_ended(name, Path(row.cwd))):
            yield Leftover(f"terminals of a run that {why}", f"{name} ({row.cwd})", partial(_stop, name, Path(row.cwd)))


def why_ended(session: str, wd: Path) -> str:
    """Why the run of a session is over; empty where it is not, or where that cannot be told."""
    run = run_id_of(session)
    if not run:
        return ""
    if not wd.is_dir():
        return "has lost its project"
    folder = wd / TMP / run
    status = read_run(folder).status if folder.is_dir() else ""
    if status in (PASS, FAIL):
        return f"ended with {status}"
    saved = _saved(wd)
    return "was left behind by a newer one" if saved and saved.run_id and saved.run_id != run else ""


def old_runs(wd: Path, keep: int) -> Iterator[Leftover]:
    """The folders of a project's runs, but for the newest and for one that could go on."""
    if who := worker(wd):
        raise RunError(f"{wd}: a run is at work here ({who}); its folders are left alone")
    saved = _saved(wd)
    current = saved.run_id if saved and saved.final_status is Status.RUNNING else ""
    for folder in run_folders(wd)[keep:]:
        if folder.name != current:
            yield Leftover("the folder of an old run", str(folder), partial(_remove_run, wd, folder))


def _saved(wd: Path) -> State | None:
    try:
        return load_state(wd / STATE_FILE)
    except StateError:
        return None


def _is_old(path: Path, now: float, seconds: float | None = None) -> bool:
    try:
        return now - path.lstat().st_mtime > (YOUNG_SECONDS if seconds is None else seconds)
    except OSError:
        return False


def _stop(session: str, wd: Path) -> None:
    if why_ended(session, wd):  # asked again: somebody may have gone on with it in the meantime
        end_session(session)


def _remove_terminals(folder: Path, socket: Path, now: float) -> None:
    if (not socket.exists() or is_dead_socket(socket)) and _is_needless(folder, now):  # asked again, as above
        _remove_folder(folder)


def _remove_run(wd: Path, folder: Path) -> None:
    """Remove a run's folder, and what would bring it back: its state, which the next run would archive there.

    Its terminals are ended too: without the folder nobody would know any more that their run is over.
    """
    if worker(wd):
        raise RunError(f"{folder}: a run has been started here; its folders are left alone")
    for name in StateFolder().session_names():
        if run_id_of(name) == folder.name:
            with suppress(ServerError):  # nothing of it was left
                end_session(name)
    _remove_folder(folder)
    saved = _saved(wd)
    if saved and saved.run_id == folder.name and saved.final_status is not Status.RUNNING:
        (wd / STATE_FILE).unlink(missing_ok=True)


def _remove_folder(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise RunError(f"{error.filename or folder}: cannot be removed ({error.strerror})") from None


def count_leftovers(wd: Path) -> tuple[int, int]:
    """How much there is to clear up: dead things, and sessions that live on although their run is over."""
    try:
        return len([*dead_terminals(), *dead_word(wd)]), len(list(ended_sessions()))
    except (OSError, QuintetError):
        return 0, 0
