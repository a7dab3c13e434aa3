"""Typing into an agent, and making sure that it has taken the input. Nothing is ever pasted twice."""

import asyncio
import os
import re
import signal
import time
from dataclasses import replace
from functools import partial
from typing import Final

from quintet import files
from quintet.api.status import AT_REST, TerminalStatus
from quintet.processes import now_of_starts, signal_group
from quintet.providers import editor
from quintet.server.refusals import BadRequest, Conflict, NotTaken
from quintet.server.terminal.agent_terminal import AT_WORK, AgentTerminal
from quintet.server.terminal.composer import fill_composer, leave_file
from quintet.server.terminal.dialogs import answer_dialog, check_no_dialog, dismiss_dialog, needs_answer, shows_dialog
from quintet.server.terminal.facts import REMEMBERED, Facts
from quintet.server.terminal.keys import (
    cannot_take_input,
    has_changed,
    has_ended,
    press_keys,
    run_if_alive,
    wait_until,
)
from quintet.server.terminal.pane import NO_ANSWER, PaneView
from quintet.server.tmux.connection import quote
from quintet.server.tmux.errors import TmuxError

BUSY_SECONDS: Final = 3.0
"""how long input waits for an agent that is at work, before it is typed all the same"""
TAKEN_SECONDS: Final = 30.0
DRAFT_SECONDS: Final = 3.0
FIRST_AGAIN, LONGEST_AGAIN = 0.4, 3.0
"""seconds until Enter is pressed again"""
BYTES_PER_SECOND: Final = 200_000
"""that a slow agent reads of a long paste"""
EXIT_SECONDS: Final = 1.5
COMMAND_SECONDS: Final = 5.0
CLEAR_SECONDS: Final = 0.5
MOST_LINES: Final = 60
"""of a draft that is cleared line by line"""
MOST_BYTES: Final = 64 << 20
"""of an input that an earlier server has left; far more than it takes"""
LONGEST_DRAFT: Final = 2000
"""characters of a cleared draft that its event holds"""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_control_characters(message: str) -> str:
    """The message without what a terminal would take as a command, such as the end of a paste."""
    return _CONTROLS.sub("", message.replace("\r\n", "\n").replace("\r", "\n"))


async def send_message(terminal: AgentTerminal, message: str, dispatch: str = "") -> None:
    """Type a message and make sure that the agent has taken it. The same dispatch id is typed only once."""
    text = without_control_characters(message)
    if not text.strip():
        raise BadRequest("message: there is nothing in it to type")
    text = message if terminal.provider.doorbell else text
    await _wait_until_started(terminal)  # before the lock is taken: a start may have something to type itself
    async with terminal.typing:
        if dispatch and dispatch in terminal.facts.dispatches:
            if terminal.facts.pasted and dispatch == terminal.facts.dispatches[-1]:
                await _finish(terminal)
            return
        await _check_ready(terminal)
        await dismiss_dialog(terminal)
        if not dispatch and await needs_answer(terminal):
            await answer_dialog(terminal, text)
            return
        await check_no_dialog(terminal)
        await _wait_until_at_rest(terminal)
        await dismiss_dialog(terminal)
        await check_no_dialog(terminal)
        if terminal.provider.doorbell:
            await _hand_over(terminal, text, dispatch)
            return
        await _clear_composer(terminal)
        if terminal.provider.is_command(text):
            await _type_command(terminal, text)
        else:
            await _type_prompt(terminal, text, dispatch)


async def finish_paste(terminal: AgentTerminal) -> None:
    """Submit what an earlier server has pasted."""
    async with terminal.typing:
        if terminal.facts.pasted:
            await _finish(terminal)


async def end_agent(terminal: AgentTerminal) -> None:
    """End the agent: by its own command, else by signals."""
    try:
        await terminal.save_facts(replace(terminal.facts, exiting=True))
        if terminal.ended:
            return
        await terminal.refresh()
        if terminal.report.status in AT_REST and not terminal.typing.locked():
            async with terminal.typing:
                await _clear_composer(terminal)
                await _type_command(terminal, terminal.provider.exit_command, wait=False)
                await wait_until(terminal, has_ended, EXIT_SECONDS, 0.01)
    except (Conflict, TmuxError):
        pass  # it ends below, if it has not ended by itself
    for number in (signal.SIGHUP, signal.SIGKILL):
        if terminal.is_running():
            signal_group(terminal.pid, number)
            await wait_until(terminal, has_ended, 0.5, 0.01)
    await terminal.refresh()


async def _wait_until_started(terminal: AgentTerminal) -> None:
    startup = terminal.startup
    if startup is not None and not startup.done() and startup is not asyncio.current_task():
        await asyncio.wait([startup], timeout=terminal.provider.start_seconds)


async def _check_ready(terminal: AgentTerminal) -> None:
    await terminal.refresh()
    if terminal.unresponsive:
        raise cannot_take_input(terminal, NO_ANSWER)
    if terminal.report.status is TerminalStatus.ERROR:
        raise cannot_take_input(terminal, terminal.report.reason)
    if not terminal.facts.ready:
        reason = terminal.user_task or "its program is starting"
        raise Conflict(f"Terminal '{terminal.facts.id}' is not ready: {reason}")


async def _wait_until_at_rest(terminal: AgentTerminal) -> None:
    ready = AT_REST | {TerminalStatus.WAITING_USER_ANSWER}
    await wait_until(terminal, lambda view: terminal.provider.read_screen(view.screen) in ready, BUSY_SECONDS)


async def _clear_composer(terminal: AgentTerminal) -> None:
    """Remove what somebody has left in the composer: it would be sent with the message."""
    provider = terminal.provider
    draft = provider.draft((await terminal.look()).screen)
    if draft:
        terminal.tell("draft", state="cleared", text=draft.strip()[:LONGEST_DRAFT])
    for _ in range(MOST_LINES):
        screen = terminal.view.screen
        if terminal.ended or not provider.draft(screen):
            return
        await press_keys(terminal, *provider.clear_keys)
        if not await wait_until(terminal, partial(has_changed, screen), CLEAR_SECONDS):
            break
    raise Conflict(f"Terminal '{terminal.facts.id}' holds a draft that cannot be cleared: somebody is typing there")


async def _type_command(terminal: AgentTerminal, text: str, *, wait: bool = True) -> None:
    """Type one of the program's own commands, letter by letter; with `wait` until it was taken."""
    await check_no_dialog(terminal)
    await run_if_alive(terminal, f"send-keys -l -t {terminal.pane_id} -- {quote(text)}")
    provider = terminal.provider
    at_rest = provider.read_screen(terminal.view.screen) in AT_REST
    seen = await wait_until(terminal, lambda view: provider.holds_draft(view.screen, text), DRAFT_SECONDS)
    await _press_enter(terminal)
    begun = time.monotonic()
    while wait and not await wait_until(
        terminal, lambda view: not provider.holds_draft(view.screen, text), FIRST_AGAIN
    ):
        if time.monotonic() - begun > COMMAND_SECONDS:
            raise NotTaken(f"Terminal '{terminal.facts.id}' does not take the command: it still stands in its composer")
        await _press_enter(terminal)
    if wait and not seen and not at_rest:
        raise NotTaken(f"Terminal '{terminal.facts.id}' is at work and shows no sign that it has taken the command")


async def _type_prompt(terminal: AgentTerminal, text: str, dispatch: str) -> None:
    """Begin a turn with a prompt."""
    text = terminal.provider.escape(text)
    new = _facts_of_turn(terminal, dispatch)
    await check_no_dialog(terminal)
    await fill_composer(terminal, text, new)
    terminal.tell("turn", turn=new.turn, state="began")
    await _submit(terminal, text, fresh=True)


def _facts_of_turn(terminal: AgentTerminal, dispatch: str) -> Facts:
    """What is stored of a terminal when it gets a prompt."""
    facts = terminal.facts
    return replace(
        facts,
        turn=facts.turn + 1,
        since=terminal.provider.record_position(terminal.folder),
        dispatches=(*facts.dispatches, dispatch)[-REMEMBERED:] if dispatch else facts.dispatches,
        pasted=True,
        begun=facts.begun or (now_of_starts() if dispatch else 0.0),
        typed=time.time(),
        server=os.getpid(),
        rested=terminal.provider.read_screen(terminal.view.screen) in AT_REST,
    )


async def _finish(terminal: AgentTerminal) -> None:
    """Make sure that an input was taken which this or an earlier server has pasted."""
    if terminal.provider.doorbell:
        await _wait_until_fetched(terminal)
    else:
        await _submit(terminal, _pasted_text(terminal), fresh=False)


async def _hand_over(terminal: AgentTerminal, text: str, dispatch: str) -> None:
    """Begin a turn of a program that takes prompts from a file, byte for byte."""
    if terminal.provider.is_command(text):
        return  # its conversations have no names
    facts = _facts_of_turn(terminal, dispatch)
    await leave_file(terminal, text, facts)
    terminal.tell("turn", turn=facts.turn, state="began")
    await _wait_until_fetched(terminal)


async def _wait_until_fetched(terminal: AgentTerminal) -> None:
    """Wait until the program has begun the turn, and press its key again while it is offered."""
    terminal.input_stuck = False
    begun = time.monotonic()
    again, pause = begun + FIRST_AGAIN, 2 * FIRST_AGAIN
    provider = terminal.provider
    while (await terminal.look()).end is None:
        if terminal.has_begun(provider.read_record(terminal.folder, terminal.facts.since)):
            break
        now = time.monotonic()
        if now - begun > TAKEN_SECONDS:
            terminal.input_stuck = True
            raise NotTaken(f"Terminal '{terminal.facts.id}' shows no sign that it has taken the input")
        if now >= again and editor.is_waiting(terminal.folder):
            await press_keys(terminal, provider.doorbell)
            again, pause = now + pause, min(2 * pause, LONGEST_AGAIN)
        await terminal.wait_for_output(0.05)
    if not terminal.ended:
        await terminal.input_taken()
    await terminal.refresh()


def _pasted_text(terminal: AgentTerminal) -> str:
    """What an unfinished delivery has pasted."""
    try:
        data = files.read(terminal.folder / editor.INPUT, MOST_BYTES, terminal.folder)
        return data.decode("utf-8", "surrogateescape")
    except OSError:
        return ""


async def _submit(terminal: AgentTerminal, text: str, *, fresh: bool) -> None:
    """Press Enter until the agent has taken what is in its composer; `fresh`: it was pasted just now."""
    terminal.input_stuck = False
    provider = terminal.provider
    before = terminal.view.screen.text
    drafted, entered = False, not fresh
    if fresh:
        patience = DRAFT_SECONDS + len(text) / BYTES_PER_SECOND
        drafted = await wait_until(terminal, lambda view: provider.holds_draft(view.screen, text), patience)
    begun = time.monotonic()
    again, pause = (begun, FIRST_AGAIN) if fresh else (begun + FIRST_AGAIN, 2 * FIRST_AGAIN)
    while True:
        view = await terminal.look()
        holds = view.end is None and provider.holds_draft(view.screen, text)
        drafted = drafted or holds
        now = time.monotonic()
        if view.end is not None or _is_taken(terminal, view, entered=entered, holds=holds, drafted=drafted):
            break
        moved = entered and not holds and now - begun > DRAFT_SECONDS and (view.screen.text != before or not fresh)
        if moved and terminal.facts.rested and not provider.has_record(terminal.folder):
            break  # the composer could not be read, but the screen has moved on
        if now - begun > TAKEN_SECONDS + len(text) / BYTES_PER_SECOND:
            terminal.input_stuck = True
            raise _not_taken(terminal, view)
        if now >= again and (holds or (not entered and _shows_composer(terminal, view))):
            if not shows_dialog(terminal, view.screen):
                await press_keys(terminal, "Enter")
                entered = True
            again, pause = now + pause, min(2 * pause, LONGEST_AGAIN)
        await terminal.wait_for_output(0.05)
    if view.end is None:
        await terminal.input_taken()
    await terminal.refresh()
    editor.clear(terminal.folder)


def _not_taken(terminal: AgentTerminal, view: PaneView) -> NotTaken:
    if shows_dialog(terminal, view.screen):
        return NotTaken(
            f"Terminal '{terminal.facts.id}' asks its user something, and does not take the input before an answer"
        )
    return NotTaken(f"Terminal '{terminal.facts.id}' shows no sign that it has taken the input")


def _shows_composer(terminal: AgentTerminal, view: PaneView) -> bool:
    """Whether Enter can only go to the composer: it is there, and empty or with something that cannot be read."""
    provider = terminal.provider
    return provider.read_screen(view.screen) in AT_REST or bool(provider.draft(view.screen))


async def _press_enter(terminal: AgentTerminal) -> None:
    """Press Enter, but never in a dialog: there it would say yes."""
    await check_no_dialog(terminal)
    await press_keys(terminal, "Enter")


def _is_taken(terminal: AgentTerminal, view: PaneView, *, entered: bool, holds: bool, drafted: bool) -> bool:
    """By the agent's record; else by a draft that was seen and is gone, or by work where there was none before.

    An agent at rest whose record does not know the turn has not begun it, unless both can be seen: records may be late.
    """
    facts, provider = terminal.facts, terminal.provider
    if provider.read_record(terminal.folder, facts.since) is not None:
        return True
    gone = drafted and not holds
    works = facts.rested and provider.read_screen(view.screen) in AT_WORK
    if facts.rested and provider.has_record(terminal.folder):
        return entered and gone and works
    return entered and (gone or works)
