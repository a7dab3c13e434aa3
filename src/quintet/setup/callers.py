"""Who has started this command: a person, or an agent in one of its terminals.

An environment variable would be enough for an honest agent. What decides here is what the kernel says of this process:
an agent that runs as the user, outside of the sandbox, can cut itself loose from its terminal, but not in every way.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from quintet.errors import RunError
from quintet.processes import HAS_PROC, PROC, children_of
from quintet.server.terminal.direct_access import tmux_servers
from quintet.server.terminal.strays import MARK

_AGENT: Final = "this is an agent's terminal; only a person says something about a run"
_LOOSE: Final = "nobody can tell who has started this: no terminal belongs to it; run it in a terminal of your own"
_ADOPTERS: Final = frozenset({"systemd", "init"})
"""programs that adopt what has cut itself loose, beside the first process of all"""


def refuse_agents(*, if_in_doubt: bool = True) -> None:
    """Let nobody but a person say something about a run; RunError where an agent does, or, in doubt, may do so."""
    if os.environ.get(MARK):
        raise RunError(_AGENT)
    servers = tmux_servers()
    if not servers:
        return
    own = psutil.Process()
    above = [own, *own.parents()]
    if any(one.pid in servers for one in above) or _has_terminal_of(servers):
        raise RunError(_AGENT)
    if if_in_doubt and HAS_PROC and own.terminal() is None and _is_loose(above, servers):
        raise RunError(_LOOSE)


def _has_terminal_of(servers: Collection[int]) -> bool:
    """Whether a terminal of an agent controls this process, or is where it reads and writes."""
    panes = set[str | None]()
    for pid in (child for server in servers for child in children_of(server)):
        with suppress(psutil.Error):
            panes.add(psutil.Process(pid).terminal())
    names = {psutil.Process().terminal()}
    for number in range(3):
        with suppress(OSError):
            names.add(os.ttyname(number))
    return bool((names & panes) - {None})


def _is_loose(above: list[psutil.Process], servers: Collection[int]) -> bool:
    """Whether this process has lost those who have started it, and may have been started in an agent's terminal.

    Of what an agent has started, all is younger than its terminal and in the same control group. A service, a job of
    cron and a command in a container have a control group or a living ancestor of their own.
    """
    with suppress(psutil.Error):
        started = [one for one in above if one.pid != 1 and one.name() not in _ADOPTERS]
        if not started or started[-1].ppid() == 0:
            return False
        first = started[-1]
        begun = min(psutil.Process(pid).create_time() for pid in servers)
        return first.create_time() > begun and _control_group(first.pid) in map(_control_group, servers)
    return False


def _control_group(pid: int) -> str:
    with suppress(OSError):
        return Path(PROC / str(pid) / "cgroup").read_text(encoding="utf-8")
    return ""
