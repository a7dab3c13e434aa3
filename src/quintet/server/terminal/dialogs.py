"""Answering what an agent asks in a dialog: with one key, and only where that is an answer.

A dialog takes a letter for one of its options and Enter for the one that is highlighted, which is mostly a yes. So
what is meant as a prompt must never get into one.
"""

import time
from functools import partial
from typing import Final

from quintet.api.status import TerminalStatus
from quintet.providers.screen import Screen
from quintet.server.refusals import Conflict
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.keys import differs, press, until

MOST_TIMES: Final = 3
"""that a key is pressed which nothing comes of"""
HEARD_SECONDS: Final = 1.0
STILL_SECONDS: Final = 0.3
YES, NO = "y", "n"


async def asks(terminal: AgentTerminal) -> bool:
    """Whether a dialog is in the way of whatever is typed now."""
    screen = (await terminal.look()).screen
    return is_asking(terminal, screen) and not terminal.provider.aside(screen)


def is_asking(terminal: AgentTerminal, screen: Screen) -> bool:
    """Whether this frame shows a dialog."""
    return terminal.provider.read_screen(screen) is TerminalStatus.WAITING_USER_ANSWER


async def check_unasked(terminal: AgentTerminal) -> None:
    """Refuse what would be taken for an answer."""
    if await asks(terminal):
        raise Conflict(f"Terminal '{terminal.facts.id}' waits for an answer to its own question: y, n or a digit")


async def answer(terminal: AgentTerminal, text: str) -> None:
    """Answer with `y`, `n` or the number of an option; anything else is no answer, and is not typed."""
    word = text.strip().lower()
    if word == YES:
        await accept(terminal)
    elif word == NO:
        await _say(terminal, terminal.provider.decline_key, to_permission=True)
    elif len(word) == 1 and word in "123456789":
        await _say(terminal, word, to_permission=False)
    else:
        await check_unasked(terminal)


async def accept(terminal: AgentTerminal) -> None:
    """Say yes to an agent that asks for leave."""
    await _say(terminal, terminal.provider.accept_key, to_permission=True)


async def _say(terminal: AgentTerminal, key: str, *, to_permission: bool) -> None:
    """Press a key once the dialog is drawn: agents do not listen before. Again where nothing comes of it."""
    for number in range(MOST_TIMES):
        asked = await _drawn(terminal)
        if not is_asking(terminal, asked):
            return
        if to_permission and not terminal.provider.is_permission(asked):
            if number:
                return  # it asks something else by now
            raise Conflict(
                f"Terminal '{terminal.facts.id}' asks something that only its user can answer: "
                "look at it and choose there, or send the number of an option"
            )
        await press(terminal, key)
        if await until(terminal, partial(differs, asked), HEARD_SECONDS):
            return


async def _drawn(terminal: AgentTerminal) -> Screen:
    """The screen when it has stood still for a moment, or at last."""
    deadline = time.monotonic() + HEARD_SECONDS
    screen = (await terminal.look()).screen
    while await until(terminal, partial(differs, screen), STILL_SECONDS) and time.monotonic() < deadline:
        screen = terminal.seen.screen
    return terminal.seen.screen
