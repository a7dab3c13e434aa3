"""The processes of terminals: what finished turns have left running is ended, and all of them stop while checks run.

What a terminal has started is below the first process of its pane, whatever it did to its environment: that is
bubblewrap, whose namespace nothing leaves, or a supervisor, which adopts what cuts itself loose. A variable that
everything started in a terminal inherits finds the rest.

An agent's program and what it has started for itself are no strays. Strays are what has cut itself loose from it, and
commands in a shell that are still running below it.
"""

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import psutil

from quintet import supervise
from quintet.processes import PROC, all_children, end_processes, has_ended, is_stopped, started_at
from quintet.sandbox.bubblewrap import PROGRAM

MARK: Final = "QUINTET_TERMINAL"
"""the variable; its value is the terminal's id"""
_PREFIX: Final = f"{MARK}=".encode()
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_ROUNDS: Final = 3
"""how often to look again for what was started while the others were ended"""
_SECONDS: Final = 0.5
"""how long a process may take to end when it is asked to"""
_QUIET_LOOKS: Final = 5
_STOP_SECONDS: Final = 2.0
"""how long processes may take to stop; one that waits for the disk or the network does nothing either"""
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


def stop_all(panes: Mapping[str, int]) -> None:
    """Stop everything that was started in terminals, but not the first processes of their panes: tmux would go on
    with those. A process that is stopped can start none, so that in the end none is left that runs.

    One look can miss a process that has just replaced itself by a child, so several in a row have to find none.
    """
    deadline, quiet_looks = time.monotonic() + _STOP_SECONDS, 0
    while quiet_looks < _QUIET_LOOKS and time.monotonic() < deadline:
        running = [pid for pid in _belonging(panes) if not is_stopped(pid)]
        quiet_looks = 0 if running else quiet_looks + 1
        _send(running, signal.SIGSTOP)
        time.sleep(0.001)


def continue_all(panes: Mapping[str, int]) -> None:
    """Let everything go on that `stop_all` has stopped."""
    _send(_belonging(panes), signal.SIGCONT)


def _belonging(panes: Mapping[str, int]) -> list[int]:
    children, own = all_children(), os.getpid()
    found = {pid for pane in panes.values() for pid in _below(pane, children)}
    found |= {pid for pid, terminal in _marked() if terminal in panes and not has_ended(pid)}
    return sorted(found - {own, *panes.values()})


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.kill(pid, number)


def _below(pid: int, children: Mapping[int, list[int]]) -> list[int]:
    """All processes below one, its children first."""
    found, todo = list[int](), [pid]
    while todo:
        below = children.get(todo.pop(0), [])
        found += below
        todo += below
    return found


def _find(terminals: Mapping[str, Owner]) -> Iterator[tuple[str, psutil.Process]]:
    children, marked = all_children(), dict(_marked())
    for terminal, owner in terminals.items():
        programs = _programs(owner.pid, children)
        agent = owner._replace(pid=programs[-1])
        loose = [pid for pid, named in marked.items() if named == terminal]
        for pid in dict.fromkeys([*_below(owner.pid, children), *loose]):
            if pid in (*programs, os.getpid()) or has_ended(pid):
                continue
            with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                process = psutil.Process(pid)
                if _is_stray(process, agent):
                    yield terminal, process


def _programs(pid: int, children: Mapping[int, list[int]]) -> list[int]:
    """The process of a pane, and where it is bubblewrap or a supervisor what that has started, down to the agent.

    In a sandbox the first process inside, which adopts what is cut loose, is bubblewrap's too. The agent is the oldest
    child of the last of them.
    """
    programs = [pid]
    with contextlib.suppress(psutil.Error):
        levels = {PROGRAM: 2, supervise.NAME: 1}.get(psutil.Process(pid).name(), 0)
        for _ in range(levels):
            below = children.get(programs[-1], [])
            if not below:
                break
            programs.append(min(below, key=started_at))
    return programs


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
