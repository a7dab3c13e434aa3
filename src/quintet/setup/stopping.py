"""Stops runs: first the process, which would start its terminals again, then the terminals, then the state."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet.api.quintet_backend import backend_of
from quintet.config import Settings
from quintet.errors import QuintetError, RunError, ServerError
from quintet.loop.decide import flow
from quintet.loop.decide.state import State, Status
from quintet.loop.decide.steps import Stopped, TerminalsEnded
from quintet.loop.journal import RunStopped
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.lock import find_process, no_run
from quintet.loop.record.orphans import is_folder_name
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import digest_of, load_project_state, save
from quintet.loop.record.state_file import save_state, state_file_of
from quintet.loop.run.resume import can_resume
from quintet.loop.run.terminals import end_terminals
from quintet.loop.run.work_tree import head_commit
from quintet.processes import Process, has_ended
from quintet.program import program
from quintet.server.http.client import client_for
from quintet.server.names import run_id_of
from quintet.server.terminal.direct_access import (
    TerminalRow,
    choose_terminals,
    end_session,
    list_terminals,
    sessions_in,
)
from quintet.setup.running_projects import running_projects
from quintet.watch.report.write_report import write_report
from quintet.watch.runs.folders import find_run, has_process, read_run, run_folders
from quintet.workspace.worktrees import trees_of, worktree_at

PATIENCE_SECONDS: Final = 20.0
"""how long a run that was asked to stop may take; its server waits for pages that are open"""
KILLED_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.02
REASON: Final = "stopped with quintet stop"
KILLED: Final = f"{REASON}: its process did not answer and was killed"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """What is to be stopped in one project."""

    wd: Path
    process: Process | None = None
    """of the run that is running there"""
    sessions: tuple[str, ...] = ()
    whole: bool = False
    """whether all of the project is meant, also terminals on another server that only its state names"""


def targets_in_project(project: Path) -> list[Target]:
    """The running runs of a project, those in worktrees too, and all their terminals."""
    rows = list_terminals()
    found = [Target(tree, find_process(tree), sessions_of(tree, rows), whole=True) for tree in trees_of(project)]
    found = [one for one in found if one.process or one.sessions or _is_elsewhere(load_project_state(one.wd), ())]
    if not found:
        names = ", ".join(dict.fromkeys(row.session for row in rows))
        there = f"there are {names}; name one with --session NAME, or all with --all" if names else "nor in any other"
        raise ServerError(f"no run and no terminals are in {project}, {there}")
    return found


def target_of_run(project: Path, run: str) -> Target:
    """One run of a project, and its terminals."""
    folder = find_run(project, run)
    wd = folder.parents[1]
    process = find_process(wd) if has_process(folder, read_run(folder)) else None
    sessions = tuple(dict.fromkeys(row.session for row in list_terminals() if run_id_of(row.session) == folder.name))
    saved = load_project_state(wd)
    current = saved is not None and saved.run_id == folder.name
    if process is None and not sessions and not (current and _is_elsewhere(saved, ())):
        raise RunError(f"the run {folder.name} is not running and has no terminals")
    return Target(wd, process, sessions, whole=current)


def target_of_session(name: str) -> Target:
    """One session, and the running run that it belongs to."""
    row = choose_terminals(list_terminals(), None, name)[0]
    wd = Path(row.cwd) if not row.unresponsive else next(iter(_projects_of(row.session)), Path(os.devnull))
    saved = load_project_state(wd)
    is_current = saved is not None and saved.session_name == row.session
    return Target(wd, find_process(wd) if is_current else None, (row.session,))


def stop_all(tell: Tell, *, keep_terminals: bool = False) -> None:
    """Stop all runs of this user. An error in one project does not keep the others from being stopped."""
    homes: dict[Path, list[str]] = {wd: [] for wd in running_projects()}
    for row in list_terminals():
        if not any(row.session in sessions for sessions in homes.values()):
            homes.setdefault(Path(row.cwd), []).append(row.session)
    problems = []
    for wd, sessions in homes.items():
        try:
            process = find_process(wd)
            if process or (sessions and not keep_terminals):
                stop(Target(wd, process, tuple(sessions), whole=bool(process)), tell, keep_terminals=keep_terminals)
        except QuintetError as error:
            problems.append(str(error))
    if problems:
        raise RunError("; ".join(problems))


def stop_below(folder: Path, tell: Tell) -> None:
    """Stop every run that works in a folder or below it, and end its terminals."""
    rows = [row for row in list_terminals() if Path(row.cwd).is_relative_to(folder)]
    for tree in dict.fromkeys([folder, *(Path(row.cwd) for row in rows)]):
        process = find_process(tree) if tree.is_dir() else None
        sessions = dict.fromkeys(row.session for row in rows if Path(row.cwd) == tree)
        if (saved := load_project_state(tree)) and saved.session_name:
            sessions[saved.session_name] = None  # without a terminal, where the machine was frozen while it was started
        if process or sessions:
            stop(Target(tree, process, tuple(sessions)), tell)


def stop(target: Target, tell: Tell, *, keep_terminals: bool = False) -> None:
    """Stop a run so that it can be resumed later; print what was done, and how to resume it."""
    if keep_terminals and not target.process:
        raise RunError("no run is running there, so there are only terminals to end")
    killed = _end_process(target, tell) if target.process else False
    saved = load_project_state(target.wd)
    # nobody may resume the run while its terminals are being ended
    with no_run(target.wd) if saved else nullcontext():
        ended = [] if keep_terminals else _end_terminals(target, saved, tell)
        saved = load_project_state(target.wd)
        if saved and saved.final_status is Status.RUNNING and (target.process or saved.session_name in ended):
            saved = _record_stop(target, saved, ended=saved.session_name in ended, killed=killed)
    if keep_terminals:
        tell(f"Its terminals stay open: {program()} attach ROLE shows one, {program()} stop ends them.")
    if saved and saved.final_status is Status.RUNNING and (target.process or saved.session_name in ended):
        again = "Resume it" if can_resume(saved) else "It had done nothing yet. Start it again"
        worktree = worktree_at(target.wd)  # several runs may be unfinished in those of a project: the task says which
        task = " TASK.md" if worktree or not can_resume(saved) else ""
        tell(f"{again}: {_in(worktree.project if worktree else target.wd)}{program()} run{task}")


def _end_process(target: Target, tell: Tell) -> bool:
    """Ask the run's process to stop, wait for it, and kill it where it does not; returns whether it was killed."""
    process = target.process
    if process is None:
        return False
    saved = load_project_state(target.wd)
    name = f"run {saved.run_id}" if saved and saved.run_id else f"run in {target.wd}"
    tell(f"Asking the {name} to stop (process {process.pid}).")
    process.send(signal.SIGTERM)
    process.send(signal.SIGCONT)  # Ctrl-Z may have paused it
    if _until_gone(process, PATIENCE_SECONDS):
        saved = load_project_state(target.wd)
        tell("It has stopped, and its state is saved." if saved else "It has stopped; it had not begun yet.")
        return False
    process.send(signal.SIGKILL)
    if not _until_gone(process, KILLED_SECONDS):
        raise RunError(f"the process {process.pid} of the {name} does not end; its terminals are left alone")
    tell(f"It did not stop within {PATIENCE_SECONDS:g} s, so it was killed. Its state is that of its last step.")
    return True


def _until_gone(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.is_there and not has_ended(process.pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _end_terminals(target: Target, saved: State | None, tell: Tell) -> list[str]:
    """End the sessions, also one that was started since they were listed; returns their names."""
    sessions = dict.fromkeys(target.sessions)
    if target.process and saved and any(row.session == saved.session_name for row in list_terminals()):
        sessions[saved.session_name] = None
    ended = []
    for name in sessions:
        with suppress(ServerError):  # it went by itself
            end_session(name)
        tell(f"Ended {name}.")
        ended.append(name)
    if saved and target.whole and _is_elsewhere(saved, ended):
        ended += _end_elsewhere(saved, tell)
    return ended


def _is_elsewhere(saved: State | None, ended: list[str] | tuple[()]) -> bool:
    """Whether a run's terminals are on another server, by its state."""
    return bool(saved and saved.api and saved.session_name not in ended and any(t.id for t in saved.terminals.values()))


def _end_elsewhere(saved: State, tell: Tell) -> list[str]:
    try:
        is_named = os.environ.get("API", "").rstrip("/") == saved.api
        backend = backend_of(client_for(saved.api, saved.wd, None if is_named else tell))
        backend.check_token()
        done = end_terminals(backend, saved)
        backend.close()
    except QuintetError as error:
        done = False
        tell(f"{error}")
    if not done:
        tell(f"The terminals may still be open: their server at {saved.api} did not confirm their end.")
        return []
    tell(f"Ended the terminals of {saved.session_name} at {saved.api}.")
    return [saved.session_name]


def _record_stop(target: Target, saved: State, *, ended: bool, killed: bool) -> State:
    """Write the stop into state, journal and report; a resumed run gets new terminals for those that were ended.

    The run has no process any more that could fold it in, so this does: by the same rules, and under the run's lock.
    """
    settings, reason = Settings(), KILLED if killed else REASON
    step, state = flow.next_step(saved, settings), saved
    # a state with neither terminals nor work cannot be resumed; our own server replaces terminals that are lost
    if ended and (saved.sequence or saved.api):
        state, _ = flow.apply(state, step, TerminalsEnded(), settings)
    if not target.process:
        _save(state, target.wd)
        return state
    _save(flow.apply(state, step, Stopped(reason), settings)[0], target.wd)
    event = RunStopped(reason=reason, resumable=can_resume(state), cleaned_up=ended, head=head_commit(target.wd))
    if is_folder_name(saved.run_id):
        record = RunRecord(target.wd, saved.run_id)
        with suppress(OSError):  # the state is what counts
            Journal.of(record).write(event)
            write_report(record.archive, at_end=True)
    return state


def _save(state: State, wd: Path) -> None:
    """Save a state with its run's record, where there is one."""
    path, record = state_file_of(wd), RunRecord(wd, state.run_id)
    if is_folder_name(state.run_id) and record.is_known:
        save(state, path, record, digest_of(path))
    else:
        save_state(state, path)


def sessions_of(wd: Path, rows: list[TerminalRow]) -> tuple[str, ...]:
    """The sessions of a project, also those of its runs that do not answer."""
    runs = {folder.name for folder in run_folders(wd)}
    silent = [row.session for row in rows if row.unresponsive and run_id_of(row.session) in runs]
    return tuple(dict.fromkeys([*sessions_in(rows, wd), *silent]))


def _projects_of(session: str) -> list[Path]:
    """The projects with a running run whose state names a session that does not answer."""
    return [wd for wd in running_projects() if (saved := load_project_state(wd)) and saved.session_name == session]


def _in(wd: Path) -> str:
    return "" if wd == Path.cwd().resolve() else f"cd {wd} && "
