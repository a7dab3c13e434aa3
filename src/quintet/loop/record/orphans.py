"""Runs that have lost their state file: what their journals tell of the terminals that they may have left."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from quintet.config import Settings
from quintet.layout import JOURNAL, TMP, run_folder
from quintet.loop.decide.state import State, TerminalRef
from quintet.loop.journal import RunFinished, RunStarted, TerminalCreated
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.run_record import recorded, recorded_runs

MOST: Final = 12
"""runs that are looked at, from the newest on: older ones were cleared away when these began"""


def find_orphans(settings: Settings) -> list[State]:
    """The unfinished runs of a project that have no state file any more, in no place."""
    names = {path.parent.name for path in (settings.workspace.tree / TMP).glob(f"*/{JOURNAL}")}.union(
        recorded_runs(settings.workspace.tree)
    )
    folders = [run_folder(settings.workspace.tree, name) for name in sorted(names, reverse=True)]
    stateless = [folder for folder in folders if not (folder / settings.state_file.name).exists()]
    found = [state_from_journal(recorded(folder) / JOURNAL) for folder in stateless[:MOST]]
    return [state for state in found if state is not None]


def is_folder_name(name: str) -> bool:
    """Whether a name from a file names a folder below `.tmp/`, and nothing else."""
    return bool(re.fullmatch(r"\w[\w.-]{0,100}", name))


def state_from_journal(path: Path) -> State | None:
    """A run as its journal shows it; None where it has ended, or has never begun."""
    state, begun = State(run_id=path.parent.name), False
    for event in Journal(path).read():
        match event:
            case RunFinished():
                return None
            case RunStarted(session=session) | TerminalCreated(session=session) if is_folder_name(session):
                state = replace(state, session_name=session)
        begun = begun or isinstance(event, RunStarted | TerminalCreated)
        if isinstance(event, TerminalCreated) and event.role in state.terminals:
            terminal = TerminalRef(event.terminal, event.provider)
            state = replace(state, terminals=state.terminals | {event.role: terminal})
    return state if begun else None
