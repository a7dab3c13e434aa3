"""What a pane shows, with its colours, for the dashboard."""

from typing import Final

from quintet.ansi import only_colours
from quintet.api import models
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.tmux.connection import HEIGHT, WIDTH, quote
from quintet.server.tmux.errors import TmuxError

_FORMAT: Final = "#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag}"


async def capture_colours(terminal: AgentTerminal) -> models.Picture:
    """The pane as it is now; of a terminal that has ended, what it showed last."""
    pane = terminal.pane_id
    if not terminal.ended:
        try:
            described, shown = await terminal.tmux.run_all(
                [f"display-message -p -t {pane} {quote(_FORMAT)}", f"capture-pane -p -e -t {pane}"]
            )
            columns, rows, x, y, visible = map(int, described[0].split())
        except (TmuxError, ValueError):
            await terminal.refresh()
        else:
            text = "\n".join(map(only_colours, shown))
            return models.Picture(text=text, columns=columns, rows=rows, cursor=[x, y] if visible else None)
    return models.Picture(text=only_colours(terminal.view.screen.text), columns=WIDTH, rows=HEIGHT)
