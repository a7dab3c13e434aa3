"""Typing into an agent, and making sure that it was taken. Nothing is ever pasted twice."""

import asyncio
import os
import re
import signal
import time
from dataclasses import replace
from functools import partial
from typing import Final

from quintet.api.status import AT_REST, TerminalStatus
from quintet.processes import signal_group
from quintet.providers.editor import INPUT
from quintet.server.refusals import BadRequest, Conflict, NotTaken
from quintet.server.terminal.agent_terminal import AT_WORK, MUTE, AgentTerminal, PaneView
from quintet.server.terminal.composer import fill
from quintet.server.terminal.dialogs import HEARD_SECONDS, MOST_TIMES, answer, asks, check_unasked, is_asking
from quintet.server.terminal.facts import REMEMBERED
from quintet.server.terminal.keys import differs, guarded, press, until
from quintet.server.tmux.connection import quote
from quintet.server.tmux.errors import TmuxError

BUSY_SECONDS: Final = 3.0
"""how long input waits for an agent that is at work, before it is typed all the same"""
TAKEN_SECONDS: Final = 30.0
DRAFT_SECONDS: Final = 3.0
FIRST_AGAIN, LONGEST_AGAIN = 0.4, 3.0
"""seconds until Enter is pressed again"""
BYTES_PER_SECOND: Final = 200_000
"""a slow agent's reading of a long paste"""
EXIT_SECONDS: Final = 1.5
COMMAND_SECONDS: Final = 5.0
CLEAR_SECONDS: Final = 0.5
MOST_LINES: Final = 60
"""of a draft that is cleared line by line"""
LONGEST_DRAFT: Final = 2000
"""characters of a draft that are told"""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(message: str) -> str:
    """The message without what a terminal would take as a command, such as the end of a paste."""
    return _CONTROLS.sub("", message.replace("\r\n", "\n").replace("\r", "\n"))


async def deliver(terminal: AgentTerminal, message: str, dispatch: str = "") -> None:
    """Type a message and see that the agent has taken it. The same dispatch is typed only once."""
    text = clean(message)
    if not text.strip():
        raise BadRequest("message: there is nothing in it to type")
    await _until_started(terminal)  # before the lock is taken: a start may have something to type itself
    async with terminal.typing:
        if dispatch and dispatch in terminal.facts.dispatches:
            if terminal.facts.pasted and dispatch == terminal.facts.dispatches[-1]:
                await _submit(terminal, _draft(terminal), fresh=False)
            return
        await _check_ready(terminal)
        await _put_aside(terminal)
        if not dispatch and await asks(terminal):
            await answer(terminal, text)
            return
        await check_unasked(terminal)
        await _until_at_rest(terminal)
        await _put_aside(terminal)
        await check_unasked(terminal)
        await _clear(terminal)
        if terminal.provider.is_command(text):
            await _command(terminal, text)
        else:
            await _prompt(terminal, text, dispatch)


async def finish(terminal: AgentTerminal) -> None:
    """Bring to its end what an earlier server has pasted."""
    async with terminal.typing:
        if terminal.facts.pasted:
            await _submit(terminal, _draft(terminal), fresh=False)


async def end(terminal: AgentTerminal) -> None:
    """End the agent: by its own command, else by signals."""
    try:
        await terminal.keep(replace(terminal.facts, exiting=True))
        if terminal.ended:
            return
        report = await terminal.report()
        if report.status in AT_REST and not terminal.typing.locked():
            async with terminal.typing:
                await _clear(terminal)
                await _command(terminal, terminal.provider.exit_command, wait=False)
                await until(terminal, lambda look: look.end is not None, EXIT_SECONDS, 0.01)
    except (Conflict, TmuxError):
        pass  # it ends below, if it has not ended by itself
    for number in (signal.SIGHUP, signal.SIGKILL):
        if terminal.is_running():
            signal_group(terminal.pid, number)
            await until(terminal, lambda look: look.end is not None, 0.5, 0.01)
    await terminal.report()


async def _until_started(terminal: AgentTerminal) -> None:
    start = terminal.start
    if start is not None and not start.done() and start is not asyncio.current_task():
        await asyncio.wait([start], timeout=terminal.provider.start_seconds)


async def _check_ready(terminal: AgentTerminal) -> None:
    report = await terminal.report()
    if terminal.mute:
        raise Conflict(f"Terminal '{terminal.facts.id}' cannot take input: {MUTE}")
    if report.status is TerminalStatus.ERROR:
        raise Conflict(f"Terminal '{terminal.facts.id}' cannot take input: {report.reason}")
    if not terminal.facts.ready:
        raise Conflict(f"Terminal '{terminal.facts.id}' is not ready: {terminal.needs or 'its program is starting'}")


async def _until_at_rest(terminal: AgentTerminal) -> None:
    ready = AT_REST | {TerminalStatus.WAITING_USER_ANSWER}
    await until(terminal, lambda look: terminal.provider.read_screen(look.screen) in ready, BUSY_SECONDS)


async def _put_aside(terminal: AgentTerminal) -> None:
    """Put away a dialog to which no answer is needed."""
    for _ in range(MOST_TIMES):
        screen = (await terminal.look()).screen
        keys = terminal.provider.aside(screen)
        if not keys:
            return
        await press(terminal, *keys)
        await until(terminal, partial(differs, screen), HEARD_SECONDS)


async def _clear(terminal: AgentTerminal) -> None:
    """Take out of the composer what somebody has left there: it would be sent with the message."""
    facts, provider = terminal.facts, terminal.provider
    left = provider.draft((await terminal.look()).screen)
    if left:
        told = left.strip()[:LONGEST_DRAFT]
        terminal.events.add("draft", terminal=facts.id, session=facts.session, state="cleared", text=told)
    for _ in range(MOST_LINES):
        screen = terminal.seen.screen
        if terminal.ended or not provider.draft(screen):
            return
        await press(terminal, *provider.clear_keys)
        if not await until(terminal, partial(differs, screen), CLEAR_SECONDS):
            break
    raise Conflict(f"Terminal '{facts.id}' holds a draft that cannot be cleared: somebody is typing there")


async def _command(terminal: AgentTerminal, text: str, *, wait: bool = True) -> None:
    await check_unasked(terminal)
    await guarded(terminal, f"send-keys -l -t {terminal.pane} -- {quote(text)}")
    provider = terminal.provider
    at_rest = provider.read_screen(terminal.seen.screen) in AT_REST
    seen = await until(terminal, lambda look: provider.holds_draft(look.screen, text), DRAFT_SECONDS)
    await _enter(terminal)
    begun = time.monotonic()
    while wait and not await until(terminal, lambda look: not provider.holds_draft(look.screen, text), FIRST_AGAIN):
        if time.monotonic() - begun > COMMAND_SECONDS:
            raise NotTaken(f"Terminal '{terminal.facts.id}' does not take the command: it still stands in its composer")
        await _enter(terminal)
    if wait and not seen and not at_rest:
        raise NotTaken(f"Terminal '{terminal.facts.id}' is at work and shows no sign that it has taken the command")


async def _prompt(terminal: AgentTerminal, text: str, dispatch: str) -> None:
    facts = terminal.facts
    text = terminal.provider.escape(text)
    new = replace(
        facts,
        turn=facts.turn + 1,
        since=terminal.provider.record_position(terminal.folder),
        dispatches=(*facts.dispatches, dispatch)[-REMEMBERED:] if dispatch else facts.dispatches,
        pasted=True,
        typed=time.time(),
        server=os.getpid(),
        rested=terminal.provider.read_screen(terminal.seen.screen) in AT_REST,
    )
    await check_unasked(terminal)
    await fill(terminal, text, new)
    terminal.events.add("turn", terminal=new.id, session=new.session, turn=new.turn, state="began")
    await _submit(terminal, text, fresh=True)


def _draft(terminal: AgentTerminal) -> str:
    """What an unfinished delivery has pasted."""
    try:
        return (terminal.folder / INPUT).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""


async def _submit(terminal: AgentTerminal, text: str, *, fresh: bool) -> None:
    """Press Enter until the agent has taken what is in its composer."""
    terminal.stuck = False
    provider = terminal.provider
    before = terminal.seen.screen.text
    drafted, entered = False, not fresh
    if fresh:
        patience = DRAFT_SECONDS + len(text) / BYTES_PER_SECOND
        drafted = await until(terminal, lambda look: provider.holds_draft(look.screen, text), patience)
    begun = time.monotonic()
    again, pause = (begun, FIRST_AGAIN) if fresh else (begun + FIRST_AGAIN, 2 * FIRST_AGAIN)
    while True:
        look = await terminal.look()
        holds = look.end is None and provider.holds_draft(look.screen, text)
        drafted = drafted or holds
        now = time.monotonic()
        if look.end is not None or _taken(terminal, look, entered=entered, holds=holds, drafted=drafted):
            break
        moved = entered and not holds and now - begun > DRAFT_SECONDS and (look.screen.text != before or not fresh)
        if moved and terminal.facts.rested and not provider.keeps_record(terminal.folder):
            break  # a composer that could not be read; the screen has moved on
        if now - begun > TAKEN_SECONDS + len(text) / BYTES_PER_SECOND:
            terminal.stuck = True
            raise NotTaken(_not_taken(terminal, look))
        if now >= again and (holds or (not entered and _shows_composer(terminal, look))):
            if not is_asking(terminal, look.screen):
                await press(terminal, "Enter")
                entered = True
            again, pause = now + pause, min(2 * pause, LONGEST_AGAIN)
        await terminal.change(0.05)
    if look.end is None:
        await terminal.settle()
    await terminal.report()
    (terminal.folder / INPUT).unlink(missing_ok=True)


def _not_taken(terminal: AgentTerminal, look: PaneView) -> str:
    if is_asking(terminal, look.screen):
        return f"Terminal '{terminal.facts.id}' asks its user something, and does not take the input before an answer"
    return f"Terminal '{terminal.facts.id}' shows no sign that it has taken the input"


def _shows_composer(terminal: AgentTerminal, look: PaneView) -> bool:
    """Whether Enter can only mean the composer: it is there, and empty or with something that cannot be read."""
    provider = terminal.provider
    return provider.read_screen(look.screen) in AT_REST or bool(provider.draft(look.screen))


async def _enter(terminal: AgentTerminal) -> None:
    """Press Enter, never in a dialog: there it would say yes."""
    await check_unasked(terminal)
    await press(terminal, "Enter")


def _taken(terminal: AgentTerminal, look: PaneView, *, entered: bool, holds: bool, drafted: bool) -> bool:
    """By the agent's record; else by a draft that was seen and is gone, or by work where there was none before.

    An agent at rest whose record does not know the turn has not begun it, unless both can be seen: records may be late.
    """
    facts, provider = terminal.facts, terminal.provider
    if provider.read_record(terminal.folder, facts.since) is not None:
        return True
    gone = drafted and not holds
    works = facts.rested and provider.read_screen(look.screen) in AT_WORK
    if facts.rested and provider.keeps_record(terminal.folder):
        return entered and gone and works
    return entered and (gone or works)
