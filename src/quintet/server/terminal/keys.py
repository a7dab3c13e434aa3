"""Pressing keys in a pane, and seeing what comes of it."""

import time
from collections.abc import Callable

from quintet.providers.screen import Screen
from quintet.server.refusals import Conflict
from quintet.server.terminal.agent_terminal import MUTE, AgentTerminal, PaneView
from quintet.server.tmux.connection import quote
from quintet.server.tmux.errors import CommandFailed, TmuxError


async def guarded(terminal: AgentTerminal, command: str) -> None:
    """Run a command on the pane, unless its program has ended: tmux itself may crash on that."""
    if terminal.mute:
        raise Conflict(f"Terminal '{terminal.facts.id}' cannot take input: {MUTE}")
    line = f"if-shell -F -t {terminal.pane} '#{{pane_dead}}' 'display-message -p dead' {quote(command)}"
    try:
        reply = await terminal.tmux.script(line)
    except CommandFailed:
        reply = ["dead"]
    except TmuxError:
        await terminal.reconnect()
        if not terminal.ended:
            raise
        reply = ["dead"]
    if reply == ["dead"]:
        terminal.dirty = True
        report = await terminal.report()
        raise Conflict(f"Terminal '{terminal.facts.id}' cannot take input: {report.reason or 'its program has ended'}")


async def press(terminal: AgentTerminal, *keys: str) -> None:
    """Press keys, unless the program has ended."""
    await guarded(terminal, f"send-keys -t {terminal.pane} " + " ".join(quote(key) for key in keys))


async def until(
    terminal: AgentTerminal, wanted: Callable[[PaneView], bool], seconds: float, pause: float = 0.1
) -> bool:
    """Look until the pane is as wanted; False where it is not within the time."""
    deadline = time.monotonic() + seconds
    while True:
        if wanted(await terminal.look()):
            return True
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        await terminal.change(min(left, pause))


def differs(before: Screen, look: PaneView) -> bool:
    """Whether the pane shows something else than before, or has ended."""
    return look.end is not None or (look.screen.text, look.screen.cursor) != (before.text, before.cursor)
