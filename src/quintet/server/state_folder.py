"""The private folder of the server: the sockets of tmux and the folders of the terminals."""

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import ServerError
from quintet.layout import user_state_folder
from quintet.server.names import LONGEST_NAME, is_session_name

PROJECT: Final = "project"
"""the file in a terminal's folder that names its working directory: when the terminal is gone, tmux does not know it"""
_LONGEST_SOCKET: Final = 103
"""bytes of a socket's path (macOS; Linux allows 107)"""


class StateFolder:
    """One private directory with the sockets and the terminals' folders."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()
        for folder in (self.root, self.sockets, self.terminals):
            make_private(folder)

    @property
    def sockets(self) -> Path:
        return self.root / "s"

    @property
    def terminals(self) -> Path:
        return self.root / "t"

    def socket(self, session: str) -> Path:
        """The socket of a session's tmux server."""
        return self.sockets / session

    def folder(self, session: str, terminal: str) -> Path:
        """The private folder of a terminal."""
        return self.terminals / session / terminal

    def outlet(self, session: str, terminal: str) -> Path:
        """The folder of the outlet to the network of a terminal in a sandbox: no part of what the agent can write."""
        return self.terminals / session / f"{terminal}.outlet"

    def find_folder(self, terminal: str) -> Path | None:
        """The folder of a terminal, also where its session is gone."""
        return next(self.terminals.glob(f"*/{terminal}"), None)

    def make_folder(self, session: str, terminal: str) -> Path:
        """Make a terminal's folder."""
        folder = self.folder(session, terminal)
        make_private(folder.parent)
        make_private(folder)
        return folder

    def remove_folder(self, session: str, terminal: str) -> None:
        """Remove a terminal's folder, and that of the session with the last one."""
        files.remove_tree(self.folder(session, terminal))
        with suppress(OSError):
            self.folder(session, terminal).parent.rmdir()

    def remove_stray(self, terminal: str) -> None:
        """Remove the folder of a terminal whose session is gone."""
        folder = self.find_folder(terminal)
        if folder is not None and not self.socket(folder.parent.name).exists():
            self.remove_folder(folder.parent.name, terminal)

    def session_names(self) -> list[str]:
        """The sessions that have a socket, dead or alive; tmux puts a `.lock` beside one while it starts a server."""
        return sorted(path.name for path in self.sockets.iterdir() if is_session_name(path.name))


def default_root() -> Path:
    """The default folder: below the user's state directory, because the run-time one is removed with the last login."""
    root = user_state_folder()
    if len(os.fsencode(root / "s")) + 1 + LONGEST_NAME <= _LONGEST_SOCKET:
        return root
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    parent = Path(f"/tmp/quintet-{os.getuid()}")  # noqa: S108 - checked below; a socket needs a short path
    try:
        make_private(parent)
    except ServerError as error:  # in a folder that all users share, only its owner can remove it
        most = _LONGEST_SOCKET - LONGEST_NAME - len("/quintet/s/")
        raise ServerError(
            f"{str(error).partition(';')[0]}; set XDG_STATE_HOME to a folder of yours with at most {most} characters"
        ) from None
    return parent / digest


def make_private(folder: Path) -> None:
    """Make a folder that only this user can enter; refuse one that somebody else has put there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ServerError(f"{folder}: cannot be made ({error.strerror})") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ServerError(f"{folder}: is not a directory of yours; remove it")
    if stat.S_IMODE(found.st_mode) != stat.S_IRWXU:
        folder.chmod(0o700)
