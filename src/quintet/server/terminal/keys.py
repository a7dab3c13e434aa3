"""Pressing keys in a pane, and waiting for what the pane shows then."""

import time
from collections.abc import Callable

from quintet.providers.screen import Screen
from quintet.server.refusals import Conflict
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.pane import NO_ANSWER, PaneView
from quintet.server.tmux.connection import quote
from quintet.server.tmux.errors import CommandFailed, TmuxError


async def run_if_alive(terminal: AgentTerminal, command: str) -> None:
    """Run a tmux command on the pane, unless its program has ended: tmux itself may crash on that."""
    if terminal.unresponsive:
        raise cannot_take_input(terminal, NO_ANSWER)
    line = f"if-shell -F -t {terminal.pane_id} '#{{pane_dead}}' 'display-message -p dead' {quote(command)}"
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
        terminal.is_outdated = True
        await terminal.refresh()
        raise cannot_take_input(terminal, terminal.report.reason or "its program has ended")


def cannot_take_input(terminal: AgentTerminal, reason: str | None) -> Conflict:
    """The refusal for a terminal that has ended or does not answer."""
    return Conflict(f"Terminal '{terminal.facts.id}' cannot take input: {reason}")


async def press_keys(terminal: AgentTerminal, *keys: str) -> None:
    """Press keys, unless the program has ended."""
    await run_if_alive(terminal, f"send-keys -t {terminal.pane_id} " + " ".join(quote(key) for key in keys))


async def wait_until(
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
        await terminal.wait_for_output(min(left, pause))


def has_changed(before: Screen, view: PaneView) -> bool:
    """Whether the pane shows something else than before, or its program has ended."""
    return view.end is not None or (view.screen.text, view.screen.cursor) != (before.text, before.cursor)


def has_ended(view: PaneView) -> bool:
    """Whether the pane's program has ended."""
    return view.end is not None
