"""What can be seen of a terminal at one moment: the input of every screen reader."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Screen:
    """One captured frame."""

    text: str
    """the visible screen, plain text"""
    title: str = ""
    """the terminal's title (tmux: pane_title)"""
    command: str = ""
    """the program in front (tmux: pane_current_command); empty where it is not known"""
    alternate: bool = False
    """whether the program uses the alternate screen"""
    cursor: tuple[int, int] | None = None
    """column and row of the cursor, from 0; None where they are not known"""
