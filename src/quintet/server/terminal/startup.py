"""Bringing an agent to its prompt, and to its end what an earlier server has left half done."""

import time
from contextlib import suppress
from dataclasses import replace
from typing import Final

from quintet.api.status import AT_REST
from quintet.server.refusals import Conflict, NotTaken, Refusal
from quintet.server.terminal import input as delivery
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.keys import press
from quintet.server.tmux.errors import TmuxError

INITIAL: Final = "initial"
"""the file in a terminal's folder with the message that came with its creation, until it is typed"""
PENDING: Final = "pending"
DIALOG_SECONDS: Final = 1.0
"""how long a start-up dialog must stand: half-drawn ones mislead, and agents drop, or even fail on, an early key"""


async def bring_up(terminal: AgentTerminal) -> None:
    """Wait until the agent is ready, and type what came with its creation; how it went is in its status."""
    with suppress(Conflict, TmuxError):
        if not terminal.facts.ready:
            await _usher(terminal)
        if terminal.facts.initial == PENDING:
            await _type_initial(terminal)


async def _type_initial(terminal: AgentTerminal) -> None:
    facts = terminal.facts
    source = terminal.folder / INITIAL
    try:
        text = source.read_text(encoding="utf-8", errors="surrogateescape")
        await delivery.deliver(terminal, text, f"{INITIAL}-{facts.id}")
        state = "delivered"
    except (OSError, Refusal) as error:
        terminal.events.add("initial", terminal=facts.id, session=facts.session, state="failed", reason=str(error))
        state = "failed"
    await terminal.keep(replace(terminal.facts, initial=state))
    source.unlink(missing_ok=True)


async def _usher(terminal: AgentTerminal) -> None:
    """Wait until the agent is at its prompt, and answer what it asks on the way."""
    known, since = None, 0.0
    while True:
        look = await terminal.look()
        if look.end is not None:
            return
        dialog = terminal.provider.dialog(look.screen, terminal.folder)
        now = time.monotonic()
        if dialog != known:
            known, since = dialog, now
        stands = dialog is not None and now - since > DIALOG_SECONDS
        terminal.needs = dialog.message if stands and dialog is not None and not dialog.keys else None
        if stands and dialog is not None and dialog.keys:
            since = now
            await press(terminal, *dialog.keys)
        if dialog is None and terminal.provider.read_screen(look.screen) in AT_REST:
            await terminal.keep(replace(terminal.facts, ready=True))
            await terminal.report()
            return
        await terminal.change(0.25)


async def complete(terminal: AgentTerminal) -> None:
    """Submit what an earlier server has pasted; how it went is in its status."""
    with suppress(Conflict, NotTaken, TmuxError):
        await delivery.finish(terminal)
