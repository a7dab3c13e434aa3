"""Putting text into an agent's composer: by a paste, or through its editor where a paste would change the text."""

import time
from typing import Final

from quintet import files
from quintet.providers import editor
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.facts import OPTION, Facts
from quintet.server.terminal.keys import guarded
from quintet.server.tmux.connection import quote

EDITOR_SECONDS: Final = 20.0
"""how long an agent may take to open its editor"""


async def fill(terminal: AgentTerminal, text: str, facts: Facts) -> None:
    """Put a text into the composer; the facts say so afterwards.

    Both are written down and done in one go, so that a later server knows whether it was done.
    """
    files.write(terminal.folder / editor.INPUT, text)
    key = terminal.provider.editor_key(terminal.folder, text)
    remember = f"set-option -p -t {terminal.pane} {OPTION} {quote(facts.to_json())}"
    if key is None:
        await guarded(terminal, f"{remember} ; {await _paste(terminal)}")
        terminal.kept(facts)
        return
    editor.offer(terminal.folder)
    await guarded(terminal, f"{remember} ; send-keys -t {terminal.pane} {quote(key)}")
    terminal.kept(facts)
    if not await _is_fetched(terminal) and editor.withdraw(terminal.folder):
        await guarded(terminal, await _paste(terminal))


async def _paste(terminal: AgentTerminal) -> str:
    """The command that pastes the input, from a buffer that it uses up."""
    buffer = f"quintet-{terminal.facts.id}"
    source = str(terminal.folder / editor.INPUT).replace("#", "##")
    await terminal.tmux.run(f"load-buffer -b {buffer} {quote(source)}")
    return f"paste-buffer -p -r -d -b {buffer} -t {terminal.pane}"


async def _is_fetched(terminal: AgentTerminal) -> bool:
    deadline = time.monotonic() + EDITOR_SECONDS
    while not editor.is_taken(terminal.folder):
        if (await terminal.look()).end is not None or time.monotonic() > deadline:
            return False
        await terminal.change(0.02)
    return True
