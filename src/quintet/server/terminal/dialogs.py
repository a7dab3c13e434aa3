"""Answering an agent's dialog: with one key, and only where that is an answer.

A dialog takes a letter for one of its options and Enter for the highlighted one, which is mostly a yes. So a prompt
must never be typed into one.
"""

import time
from functools import partial
from typing import Final

from quintet.api.status import TerminalStatus
from quintet.providers.screen import Screen
from quintet.server.refusals import Conflict
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.keys import has_changed, press_keys, wait_until

MOST_TRIES: Final = 3
"""how often a key is pressed that has no effect"""
REACTION_SECONDS: Final = 1.0
STILL_SECONDS: Final = 0.3
YES, NO = "y", "n"


def shows_dialog(terminal: AgentTerminal, screen: Screen) -> bool:
    """Whether this screen shows a dialog."""
    return terminal.provider.read_screen(screen) is TerminalStatus.WAITING_USER_ANSWER


async def needs_answer(terminal: AgentTerminal) -> bool:
    """Whether a dialog that needs an answer would get whatever is typed now."""
    screen = (await terminal.look()).screen
    return shows_dialog(terminal, screen) and not terminal.provider.dismiss_keys(screen)


async def check_no_dialog(terminal: AgentTerminal) -> None:
    """Refuse input that a dialog would take for an answer."""
    if await needs_answer(terminal):
        raise Conflict(f"Terminal '{terminal.facts.id}' waits for an answer to its own question: y, n or a digit")


async def dismiss_dialog(terminal: AgentTerminal) -> None:
    """Close a dialog that needs no answer."""
    for _ in range(MOST_TRIES):
        screen = (await terminal.look()).screen
        keys = terminal.provider.dismiss_keys(screen)
        if not keys:
            return
        await press_keys(terminal, *keys)
        await wait_until(terminal, partial(has_changed, screen), REACTION_SECONDS)


async def answer_dialog(terminal: AgentTerminal, text: str) -> None:
    """Answer with `y`, `n` or the number of an option; anything else is no answer, and is not typed."""
    word = text.strip().lower()
    if word == YES:
        await accept(terminal)
    elif word == NO:
        await _press_answer(terminal, terminal.provider.decline_key, to_permission=True)
    elif len(word) == 1 and word in "123456789":
        await _press_answer(terminal, word, to_permission=False)
    else:
        await check_no_dialog(terminal)


async def accept(terminal: AgentTerminal) -> None:
    """Say yes to an agent that asks for permission."""
    await _press_answer(terminal, terminal.provider.accept_key, to_permission=True)


async def _press_answer(terminal: AgentTerminal, key: str, *, to_permission: bool) -> None:
    """Press a key once the dialog is drawn, because agents ignore it before; press it again where it has no effect."""
    for number in range(MOST_TRIES):
        asked = await _wait_until_still(terminal)
        if not shows_dialog(terminal, asked):
            return
        if to_permission and not terminal.provider.is_permission(asked):
            if number:
                return  # it asks something else by now
            raise Conflict(
                f"Terminal '{terminal.facts.id}' asks something that only its user can answer: "
                "look at it and choose there, or send the number of an option"
            )
        await press_keys(terminal, key)
        if await wait_until(terminal, partial(has_changed, asked), REACTION_SECONDS):
            return


async def _wait_until_still(terminal: AgentTerminal) -> Screen:
    """The screen once it has not changed for a moment, or after a second."""
    deadline = time.monotonic() + REACTION_SECONDS
    screen = (await terminal.look()).screen
    while await wait_until(terminal, partial(has_changed, screen), STILL_SECONDS) and time.monotonic() < deadline:
        screen = terminal.view.screen
    return terminal.view.screen
