"""Bringing an agent to its prompt, and finishing what an earlier server has begun."""

import time
from contextlib import suppress
from dataclasses import replace
from typing import Final

from quintet import files
from quintet.api.status import AT_REST
from quintet.server.refusals import Conflict, NotTaken, Refusal
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.input import MOST_BYTES, finish_paste, send_message
from quintet.server.terminal.keys import press_keys
from quintet.server.tmux.errors import TmuxError

INITIAL: Final = "initial"
"""the file in a terminal's folder with the message that came with its creation, until it is typed"""
PENDING: Final = "pending"
DIALOG_SECONDS: Final = 1.0
"""how long a start-up dialog must stand: half-drawn ones mislead, and agents drop, or even fail on, an early key"""


async def start_agent(terminal: AgentTerminal) -> None:
    """Wait until the agent is ready, then type the message that came with its creation; the status says how it went."""
    with suppress(Conflict, TmuxError):
        if not terminal.facts.ready:
            await _answer_startup_dialogs(terminal)
        if terminal.facts.initial == PENDING:
            await _type_initial_message(terminal)


async def finish_delivery(terminal: AgentTerminal) -> None:
    """Submit what an earlier server has pasted; the status says how it went."""
    with suppress(Conflict, NotTaken, TmuxError):
        await finish_paste(terminal)


async def _type_initial_message(terminal: AgentTerminal) -> None:
    source = terminal.folder / INITIAL
    try:
        text = files.read(source, MOST_BYTES, terminal.folder).decode("utf-8", "surrogateescape")
        await send_message(terminal, text, f"{INITIAL}-{terminal.facts.id}")
        state = "delivered"
    except (OSError, Refusal) as error:
        state = "failed"
        terminal.tell("initial", state=state, reason=str(error))
    await terminal.save_facts(replace(terminal.facts, initial=state))
    source.unlink(missing_ok=True)


async def _answer_startup_dialogs(terminal: AgentTerminal) -> None:
    """Wait until the agent is at its prompt, and answer what it asks before."""
    known, since = None, 0.0
    while True:
        view = await terminal.look()
        if view.end is not None:
            return
        dialog = terminal.provider.startup_dialog(view.screen, terminal.folder)
        now = time.monotonic()
        if dialog != known:
            known, since = dialog, now
        stands = dialog is not None and now - since > DIALOG_SECONDS
        terminal.user_task = dialog.message if stands and dialog is not None and not dialog.keys else None
        if stands and dialog is not None and dialog.keys:
            since = now
            await press_keys(terminal, *dialog.keys)
        if dialog is None and terminal.provider.read_screen(view.screen) in AT_REST:
            goes_on = terminal.facts.continues and terminal.provider.has_continued(terminal.folder)
            continues = terminal.facts.continues if goes_on else ""
            await terminal.save_facts(replace(terminal.facts, ready=True, continues=continues))
            await terminal.refresh()
            return
        await terminal.wait_for_output(0.25)
