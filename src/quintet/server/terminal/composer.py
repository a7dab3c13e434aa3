"""Putting text into an agent's composer: by a paste, or through its editor where a paste would change the text."""

import time
from typing import Final

from quintet.providers import editor
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.facts import OPTION, Facts
from quintet.server.terminal.keys import run_if_alive
from quintet.server.tmux.connection import quote

EDITOR_SECONDS: Final = 20.0
"""how long an agent may take to open its editor"""


async def fill_composer(terminal: AgentTerminal, text: str, facts: Facts) -> None:
    """Put a text into the composer and store the facts that say so.

    tmux does both in one go, so that a later server knows whether it was done.
    """
    editor.leave(terminal.folder, text)
    key = terminal.provider.editor_key(terminal.folder, text)
    store = f"set-option -p -t {terminal.pane_id} {OPTION} {quote(facts.to_json())}"
    if key is None:
        await run_if_alive(terminal, f"{store} ; {await _paste_command(terminal, text)}")
        terminal.facts_saved(facts)
        return
    editor.offer(terminal.folder)
    await run_if_alive(terminal, f"{store} ; send-keys -t {terminal.pane_id} {quote(key)}")
    terminal.facts_saved(facts)
    if not await _is_fetched(terminal) and editor.withdraw(terminal.folder):
        await run_if_alive(terminal, await _paste_command(terminal, text))


async def leave_file(terminal: AgentTerminal, text: str, facts: Facts) -> None:
    """Leave a text for a program that takes it from a file, tell it so, and store the facts that say so, in one go."""
    editor.leave(terminal.folder, text)
    editor.offer(terminal.folder)
    store = f"set-option -p -t {terminal.pane_id} {OPTION} {quote(facts.to_json())}"
    await run_if_alive(terminal, f"{store} ; send-keys -t {terminal.pane_id} {quote(terminal.provider.doorbell)}")
    terminal.facts_saved(facts)


async def _paste_command(terminal: AgentTerminal, text: str) -> str:
    """The command that pastes a text, from a buffer that it uses up."""
    buffer = f"quintet-{terminal.facts.id}"
    await terminal.tmux.load_buffer(buffer, text)
    return f"paste-buffer -p -r -d -b {buffer} -t {terminal.pane_id}"


async def _is_fetched(terminal: AgentTerminal) -> bool:
    """Wait until the agent's editor has fetched the text; False where it does not."""
    deadline = time.monotonic() + EDITOR_SECONDS
    while not editor.is_taken(terminal.folder):
        if (await terminal.look()).end is not None or time.monotonic() > deadline:
            return False
        await terminal.wait_for_output(0.02)
    return True
