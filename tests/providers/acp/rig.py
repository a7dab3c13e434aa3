"""The host as a program in a terminal of its own, with the fake agent as its child."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.ansi import plain
from quintet.processes import has_ended
from quintet.providers.acp.host_settings import FILE, RECORD, HostSettings
from quintet.providers.editor import INPUT
from quintet.providers.turn_events import read_events

FAKE: Final = Path(__file__).parents[2] / "stub" / "fake_acp.py"
SECONDS: Final = 30.0
DOORBELL: Final = b"\x1d"


class HostRig:
    """One host in a terminal of 80 columns and 24 rows."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.script: dict[str, Any] = settings.pop("script", {})
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.log = self.folder / "agent.log"
        self.seen = b""
        script = self.folder / "script.json"
        script.write_text(json.dumps({"log": str(self.log), **self.script}), encoding="utf-8")
        command = settings.pop("command", (sys.executable, str(FAKE), str(script)))
        self.settings = HostSettings(**{"name": "fake", "role": "Programmer", "command": command, **settings})
        files.write(self.folder / FILE, self.settings.to_json())
        self.terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "quintet.providers.acp.host", str(self.folder)],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=self.folder,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # as tmux does it  # noqa: PLW1509
        )
        os.close(inside)

    def __enter__(self) -> "HostRig":
        return self

    def __exit__(self, *_: object) -> None:
        """End the host, and see to it that nothing is left of the agent."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.wait()
        finally:
            self.process.kill()
            os.close(self.terminal)
        assert all(map(has_ended, self.starts()))

    def starts(self) -> list[int]:
        """The numbers of the agent's processes."""
        return [event["start"] for event in self.agent_log() if "start" in event]

    def wait(self) -> int:
        """The exit code of the host."""
        self.until(lambda: self.process.poll() is not None)
        self._read()
        return self.process.returncode

    def until(self, condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
        """Read the terminal until something is true."""
        deadline = time.monotonic() + seconds
        self._read()  # what the host had drawn before now counts, or an old title would
        while not (found := condition()):
            assert time.monotonic() < deadline, f"not in time; the screen:\n{self.text}\n{self.record()[-5:]}"
            self._read(0.01)
        return found

    def _read(self, seconds: float = 0.0) -> None:
        while select.select([self.terminal], [], [], seconds)[0]:
            try:
                data = os.read(self.terminal, 1 << 16)
            except OSError:  # the host has closed its side
                time.sleep(seconds)
                return
            self.seen += data
            seconds = 0.0

    @property
    def text(self) -> str:
        """Everything that was printed, without what steers the terminal."""
        return plain(self.seen.decode("utf-8", "replace").replace("\r\x1b[K", "\n"))

    def title_is(self, state: str) -> bool:
        """Whether the last title tells of a state."""
        titles = self.seen.split(b"\x1b]2;")[1:]
        return bool(titles) and titles[-1].startswith(f"quintet acp {state} ".encode())

    def keys(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def ready(self) -> "HostRig":
        """Wait for the line to type in."""
        self.until(lambda: self.title_is("ready"))
        return self

    def ring(self, text: str | bytes) -> None:
        """Leave a prompt, as the server does."""
        files.write(self.folder / INPUT, text)
        self.keys(DOORBELL)

    def ask(self, text: str | bytes) -> dict[str, Any]:
        """A turn from its prompt to its end, which is returned."""
        before = len(self.events("end"))
        self.ready().ring(text)
        self.until(lambda: len(self.events("end")) > before)
        return self.events("end")[-1]

    def record(self) -> list[dict[str, Any]]:
        return list(read_events(self.folder / RECORD))

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.record() if event.get("event") == kind]

    def agent_log(self) -> list[dict[str, Any]]:
        """What the agent has got."""
        return list(read_events(self.log))

    def received(self, method: str = "") -> list[dict[str, Any]]:
        """The messages that the agent has got."""
        found = [event["in"] for event in self.agent_log() if "in" in event]
        return [message for message in found if message.get("method") == method] if method else found

    def spawned(self) -> list[int]:
        """The numbers of the tools that the agent has started."""
        return [int(line) for line in (self.folder / "pids").read_text(encoding="utf-8").split()]
