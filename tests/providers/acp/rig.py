"""The host as a program in a terminal of its own with the fake agent as its child, or both in this process."""

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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.ansi import plain
from quintet.processes import has_ended
from quintet.providers import editor
from quintet.providers.acp.conversation import SERVER, Conversation
from quintet.providers.acp.host_settings import FILE, RECORD, HostSettings
from quintet.providers.acp.record_writer import RecordWriter
from quintet.providers.acp.view import HostPane
from quintet.providers.turn_events import read_events
from tests.eventually import eventually
from tests.stub.fake_acp import FakeAgent, Script

FAKE: Final = Path(__file__).parents[2] / "stub" / "fake_acp.py"
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

    def until(self, condition: Callable[[], Any]) -> Any:
        """Read the terminal until something is true."""

        def look() -> Any:
            self._read()  # what the host had drawn before now counts, or an old title would
            return condition()

        return eventually(look, on_failure=lambda: f"--- screen\n{self.text}\n--- record\n{self.record()[-5:]}")

    def _read(self) -> None:
        with suppress(OSError):  # the host has closed its side
            while select.select([self.terminal], [], [], 0)[0]:
                self.seen += os.read(self.terminal, 1 << 16)

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
        files.write(self.folder / editor.INPUT, text)
        editor.offer(self.folder)
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


class LocalAgent(FakeAgent):
    """The fake agent in this process: its messages go straight to a conversation."""

    def __init__(self, script: dict[str, Any], conversation: Conversation) -> None:
        super().__init__(Script({"log": "", **script}))
        self.conversation = conversation
        self.received: list[dict[str, Any]] = []
        conversation.start(lambda line: self._take(json.loads(line)))

    def _take(self, message: dict[str, Any]) -> None:
        self.received.append(message)
        self.waiting.append(message)

    def carry_out_all(self) -> None:
        """Carry out all requests of the conversation."""
        while self.waiting:
            message = self.waiting.popleft()
            if "method" in message and "id" in message:
                self.carry_out(message)

    def read(self) -> dict[str, Any]:
        return self.waiting.popleft()

    def send(self, message: dict[str, Any]) -> None:
        self.conversation.take_line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def step_raw(self, line: str, _: Any) -> None:
        self.conversation.take_line(line.rstrip("\n").encode())


class LocalRig:
    """A conversation with the fake agent in this process: what the messages mean, without any program."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        script = settings.pop("script", {})
        self.path, self.shown = folder / RECORD, list[bytes]()
        self.conversation = Conversation(
            HostSettings(**{"name": "fake", "role": "Programmer", "command": ("fake",), **settings}),
            str(folder),
            HostPane(self.shown.append, lambda: 80, "Programmer"),
            RecordWriter(self.path),
        )
        self.agent = LocalAgent(script, self.conversation)
        self.agent.carry_out_all()
        assert self.conversation.at_rest

    def ask(self, text: str) -> dict[str, Any]:
        """Run a turn and return its end."""
        before = len(self.events("end"))
        self.conversation.prompt(text, SERVER)
        self.agent.carry_out_all()
        (end,) = self.events("end")[before:]
        return end

    @property
    def text(self) -> str:
        self.conversation.pane.flush()
        return plain(b"".join(self.shown).decode("utf-8", "replace").replace("\r\x1b[K", "\n"))

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in read_events(self.path) if event.get("event") == kind]

    def received(self, method: str = "") -> list[dict[str, Any]]:
        """The messages that the agent has got."""
        return [one for one in self.agent.received if not method or one.get("method") == method]
