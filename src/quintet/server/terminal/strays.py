"""Processes that finished turns have left running: found by a variable that everything started in a terminal inherits.

An agent's program and what it has started for itself are left alone. What counts is what has cut itself loose from it,
and commands in a shell that are still running below it.
"""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import psutil

from quintet.processes import PROC, end_processes, parent_of, started_at
from quintet.sandbox.bubblewrap import PROGRAM

MARK: Final = "QUINTET_TERMINAL"
"""the variable; its value is the terminal's id"""
_PREFIX: Final = f"{MARK}=".encode()
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_ROUNDS: Final = 3
"""how often to look again for what was started while the others were ended"""
_SECONDS: Final = 0.5
"""how long a process may take to end when it is asked to"""
_LONGEST: Final = 200
"""characters of a command that are told"""


class Owner(NamedTuple):
    """A terminal: the number of its program, and when it got its first prompt, as processes' starts are told."""

    pid: int
    begun: float
    adopts: bool = False
    """its program adopts what its agent has cut loose, and starts nothing by itself in a turn"""


def end_strays(terminals: Mapping[str, Owner]) -> dict[str, list[str]]:
    """End what is left of the turns of some terminals; by terminal, the commands that were ended."""
    ended: dict[str, dict[int, str]] = {}
    for _ in range(_ROUNDS):
        found = list(_find(terminals))
        if not found:
            break
        for terminal, process in found:
            if words := _command(process):
                ended.setdefault(terminal, {})[process.pid] = words
        end_processes([process for _, process in found], _SECONDS)
    return {terminal: list(commands.values()) for terminal, commands in ended.items()}


def end_left_behind(terminals: Collection[str]) -> None:
    """End everything that was started in terminals whose programs have ended."""
    for _ in range(_ROUNDS):
        found = []
        for pid in [pid for pid, terminal in _marked() if terminal in terminals and pid != os.getpid()]:
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                process = psutil.Process(pid)
                found += [process] if process.status() != psutil.STATUS_ZOMBIE else []
        if not found:
            return
        end_processes(found, _SECONDS)


def _find(terminals: Mapping[str, Owner]) -> Iterator[tuple[str, psutil.Process]]:
    marked = list(_marked())
    programs = {
        name: _programs(owner.pid, [pid for pid, terminal in marked if terminal == name])
        for name, owner in terminals.items()
    }
    for pid, terminal in marked:
        owner = terminals.get(terminal)
        if owner and pid not in (*programs[terminal], os.getpid()):
            try:
                process = psutil.Process(pid)
                agent = owner._replace(pid=programs[terminal][-1])
                if process.status() != psutil.STATUS_ZOMBIE and _is_stray(process, agent):
                    yield terminal, process
            except psutil.Error:  # it has ended meanwhile
                continue


def _programs(pid: int, marked: Iterable[int]) -> list[int]:
    """The process of a pane; in a sandbox also the first one inside, which adopts what is cut loose, and the agent.

    The agent is the oldest child of that first one. It is looked for among the terminal's own processes: to ask for
    the children of a process is to look at all of the machine.
    """
    with contextlib.suppress(psutil.Error):
        if psutil.Process(pid).name() == PROGRAM:
            above = ((one, parent_of(one)) for one in marked)
            inside = [(started_at(one), one, first) for one, first in above if first and parent_of(first) == pid]
            return [pid, min(inside)[2], min(inside)[1]] if inside else [pid]
    return [pid]


def _is_stray(process: psutil.Process, owner: Owner) -> bool:
    """Whether it does not belong to the terminal's program, or to a shell that this has started in a turn."""
    is_command = False
    for one in (process, *process.parents()):
        if one.pid == owner.pid:
            return is_command
        begun_in_turn = 0 < owner.begun < started_at(one.pid)
        is_adopted = owner.adopts and one.ppid() == owner.pid
        is_command = is_command or (begun_in_turn and (is_adopted or one.name().lstrip("-") in _SHELLS))
    return True


def _marked() -> Iterator[tuple[int, str]]:
    """All processes of this user that were started in some terminal, with its id."""
    if not (PROC / "self" / "environ").exists():
        for process in psutil.process_iter():
            try:
                terminal = process.environ().get(MARK)
            except (psutil.Error, OSError):  # another user's
                continue
            if terminal:
                yield process.pid, terminal
        return
    for name in filter(str.isdecimal, os.listdir(PROC)):  # noqa: PTH208 - every process of the machine, at every turn
        with contextlib.suppress(OSError), open(f"{PROC}/{name}/environ", "rb", buffering=0) as file:  # noqa: PTH123
            for found in (b"\0" + file.read()).split(b"\0" + _PREFIX)[1:]:
                yield int(name), found.partition(b"\0")[0].decode("ascii", "replace")


def _command(process: psutil.Process) -> str:
    """What a process runs; empty where it has ended by itself."""
    try:
        words = " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return ""
    shown = "".join(char if char.isprintable() else " " for char in words)[:_LONGEST]
    return f"{shown} (process {process.pid})"
