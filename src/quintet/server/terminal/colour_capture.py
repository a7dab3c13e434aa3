"""What a pane shows, in colour, for those who watch."""

import re
from typing import Final

from quintet.api import models
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.tmux.connection import HEIGHT, WIDTH, quote
from quintet.server.tmux.errors import TmuxError

_FORMAT: Final = "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag}"
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;:]*m|\][^\x07\x1b]*(?:\x07|\x1b\\)|[\[\]()][^\x1b]?|.)?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]"
)


async def picture(terminal: AgentTerminal) -> models.Picture:
    """The pane as it is now; of a terminal that has ended, what it showed last."""
    if not terminal.ended:
        try:
            described, shown = await terminal.tmux.run_all(
                [f"display-message -p -t {terminal.pane} {quote(_FORMAT)}", f"capture-pane -p -e -t {terminal.pane}"]
            )
            columns, rows, x, y, visible = map(int, described[0].split())
        except (TmuxError, ValueError):
            await terminal.report()
        else:
            text = "\n".join(map(_only_colours, shown))
            return models.Picture(text=text, columns=columns, rows=rows, cursor=[x, y] if visible else None)
    return models.Picture(text=_only_colours(terminal.seen.screen.text), columns=WIDTH, rows=HEIGHT)


def _only_colours(line: str) -> str:
    """A line that can change nothing but the look of its letters in whatever draws it."""
    return _ESCAPE.sub(lambda found: found[0] if found[0].endswith("m") and found[0].startswith("\x1b[") else "", line)
