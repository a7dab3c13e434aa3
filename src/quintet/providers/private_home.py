"""The home of an agent in a sandbox: a folder in that of its terminal, which it sees in place of its user's home."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet import files

FOLDER: Final = "home"
"""the folder's name in that of the terminal"""
_INSIDE: Final = "home-path"
"""the file beside it that says where the agent sees it"""
_LONGEST: Final = 8192


@dataclass(frozen=True)
class PrivateHome:
    """One agent's home."""

    folder: Path
    inside: Path
    """where the agent sees it"""

    @staticmethod
    def of(terminal: Path) -> "PrivateHome | None":
        """That of a terminal, by its folder; None where its agent uses the home of its user."""
        try:
            inside = files.read(terminal / _INSIDE, _LONGEST, terminal).decode("utf-8", "surrogateescape")
        except OSError:
            return None
        return PrivateHome(terminal / FOLDER, Path(inside))

    @staticmethod
    def make(terminal: Path, inside: Path) -> "PrivateHome":
        """An empty one."""
        files.make_folder(terminal / FOLDER, terminal)
        files.write(terminal / _INSIDE, str(inside).encode("utf-8", "surrogateescape"), terminal)
        return PrivateHome(terminal / FOLDER, inside)

    def outside(self, path: str) -> Path | None:
        """Where a file is that the agent knows by a path; None where that is not in its home."""
        named = Path(path)
        if ".." in named.parts or not named.is_relative_to(self.inside):
            return None
        return self.folder / named.relative_to(self.inside)
