"""A shell in a tmux of its own: what is typed there, and what is to be seen."""

import os
import subprocess
import tempfile
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.install import need_tmux

PROMPT = "dev@box:~/proj$ "
SHELL = ("bash", "--norc", "--noprofile", "-i")
FACTS = ("alternate_on", "pane_current_command", "cursor_x", "cursor_y", "history_size", "pane_title")
BEFORE_ENTER = 0.6
"""An Enter right behind typed text counts as part of a paste."""
STOP_SECONDS = 10


class Pane:
    """`with Pane(...) as pane:` has a shell at its prompt until the block ends."""

    def __init__(self, cols: int, rows: int, folder: Path, environment: dict[str, str]) -> None:
        self.size = (cols, rows)
        self.folder = folder
        self.environment = environment | {"PS1": PROMPT, "HISTFILE": "/dev/null"}
        # A socket's path may have some 100 characters only, and the repository may lie deep.
        self._sockets = tempfile.TemporaryDirectory(prefix="q5-")
        self._tmux = [str(need_tmux()), "-S", f"{self._sockets.name}/s", "-f", "/dev/null"]

    def __enter__(self) -> Self:
        cols, rows = self.size
        self._run("new-session", "-d", "-x", str(cols), "-y", str(rows), *SHELL)
        time.sleep(0.5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("kill-server")
        self._sockets.cleanup()

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", "--", text)

    def key(self, *names: str) -> None:
        for name in names:
            self._run("send-keys", name)
            time.sleep(0.15)

    def send(self, text: str) -> None:
        self.type(text)
        time.sleep(BEFORE_ENTER)
        self.key("Enter")

    def is_raw(self) -> bool:
        """Whether a program reads the keys one by one; before that the terminal itself shows what is typed."""
        terminal = os.open(self._run("display-message", "-p", "#{pane_tty}").strip(), os.O_RDONLY | os.O_NOCTTY)
        try:
            flags: int = termios.tcgetattr(terminal)[3]
        finally:
            os.close(terminal)
        return not flags & termios.ICANON

    def text(self) -> str:
        return self._run("capture-pane", "-p")

    def capture(self) -> dict[str, Any]:
        """One frame with everything that tmux knows about it."""
        screen = self.text()
        values = (
            self._run("display-message", "-p", "\t".join(f"#{{{fact}}}" for fact in FACTS)).rstrip("\n").split("\t")
        )
        facts = dict(zip(FACTS, values, strict=True))
        return {
            "cols": self.size[0],
            "rows": self.size[1],
            "screen": screen,
            "screen_ansi": self._run("capture-pane", "-p", "-e"),
            "alternate_on": facts["alternate_on"] == "1",
            "pane_current_command": facts["pane_current_command"],
            "cursor": [int(facts["cursor_x"]), int(facts["cursor_y"])],
            "history_size": int(facts["history_size"]),
            "pane_title": facts["pane_title"],
        }

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            timeout=STOP_SECONDS,
            check=True,
        )
        return done.stdout.decode(errors="replace")
