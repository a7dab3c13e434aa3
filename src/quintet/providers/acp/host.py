"""The host of an agent that speaks the Agent Client Protocol: `python -m quintet.providers.acp.host FOLDER`.

It runs in a terminal's pane. The agent is its child and is talked to over pipes; prompts come from a file in the
terminal's folder when a key is pressed, or from a person who types; a record of the turns is written to the folder.
"""

import os
import selectors
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from quintet.providers import editor
from quintet.providers.acp.agent_process import AgentProcess
from quintet.providers.acp.conversation import SERVER, Conversation, HostEnds
from quintet.providers.acp.host_settings import RECORD, HostSettings
from quintet.providers.acp.json_rpc import LineReader
from quintet.providers.acp.keys import KEY_SECONDS, Keys
from quintet.providers.acp.record_writer import RecordWriter
from quintet.providers.acp.view import HostPane
from quintet.providers.keyboard import raw_terminal

MOST_STARTS: Final = 3
"""of a program that ends before it has given a conversation: some race for a database at their first start"""
_EXIT_SECONDS: Final = 1.0
"""how long a program whose output is at its end may take to end itself"""
_PIECE: Final = 1 << 16
_ENDING: Final = (signal.SIGHUP, signal.SIGTERM)


class Host:
    """One selector over the agent's pipes, the keyboard and the signals. Nothing in it waits for anything else."""

    def __init__(self, settings: HostSettings, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self.pane = HostPane(_write, _columns, settings.role)
        self.conversation = Conversation(settings, str(Path.cwd()), self.pane, RecordWriter(folder / RECORD))
        self.keys = Keys(self.conversation, self.pane)
        self.selector = selectors.DefaultSelector()
        self.agent: AgentProcess | None = None
        self.reader = LineReader()
        self.starts = 0
        self._signals = _signal_pipe()

    def run(self) -> int:
        """Work until somebody ends it, or the agent has ended; the exit code."""
        self.selector.register(0, selectors.EVENT_READ, "keyboard")
        self.selector.register(self._signals, selectors.EVENT_READ, "signals")
        code = 1
        try:
            self.pane.heading(f"{self.settings.name} · {self.settings.role}")
            self.start_agent()
            while True:
                self.step()
        except HostEnds as end:
            code = end.code
            self.pane.close(str(end))
            if self.agent and not code:
                self.agent.close()
        except OSError as error:  # the record cannot be written
            self.pane.close(f"{error.filename or RECORD}: {error.strerror}")
        finally:
            if self.agent:
                self.agent.end()
        return code

    def start_agent(self) -> None:
        """Start the program and begin the conversation."""
        self.starts += 1
        try:
            self.agent = AgentProcess(self.settings.command)
        except OSError as error:
            raise HostEnds(f"{self.settings.command[0]} cannot be started: {error.strerror}", 1) from None
        self.reader = LineReader()
        self.selector.register(self.agent.stdout, selectors.EVENT_READ, "agent")
        self.selector.register(self.agent.stderr, selectors.EVENT_READ, "errors")
        self.conversation.start(self.agent.send)

    def step(self) -> None:
        """Wait for something, and take it."""
        self.pane.flush()
        self.watch_stdin()
        ready = self.selector.select(self.timeout())
        for key, _ in ready:
            match key.data:
                case "agent":
                    self.read_agent()
                case "stdin" if self.agent:
                    self.agent.flush()
                case "errors" if self.agent and not self.agent.read_errors():
                    self.selector.unregister(self.agent.stderr)
                case "keyboard":
                    self.read_keyboard()
                case "signals":
                    self.read_signals()
        self.keys.flush()
        self.conversation.tick()
        if self.keys.rung and self.conversation.at_rest:
            self.take_input()

    def timeout(self) -> float | None:
        if self.keys.waits:
            return KEY_SECONDS
        deadline = self.conversation.deadline
        return None if deadline is None else max(0.0, deadline - time.time())

    def watch_stdin(self) -> None:
        """Be told when the agent takes more, while there is more."""
        if self.agent is None:
            return
        watched = self.agent.stdin in self.selector.get_map()
        if self.agent.has_unsent and not watched:
            self.selector.register(self.agent.stdin, selectors.EVENT_WRITE, "stdin")
        elif watched and not self.agent.has_unsent:
            self.selector.unregister(self.agent.stdin)

    def read_agent(self) -> None:
        data = self.agent.read() if self.agent else None
        if data == b"":
            self.agent_ended()
        elif data:
            for line in self.reader.feed(data):
                self.conversation.take_line(line)

    def agent_ended(self) -> None:
        """The program has ended by itself: tell why, and start it again where it has not begun anything yet."""
        agent = self.agent
        if agent is None:
            return
        code = agent.wait(_EXIT_SECONDS)
        agent.read_errors()
        for descriptor in (agent.stdin, agent.stdout, agent.stderr):
            with suppress(KeyError):
                self.selector.unregister(descriptor)
        self.agent = None
        agent.end()
        why = f"{self.settings.name} has ended{_exit_words(code)}"
        for line in agent.errors[-8:]:
            self.pane.dim(line)
        if self.conversation.session is None and self.starts < MOST_STARTS:
            self.pane.warning(f"{why} before it has given a conversation: it is started again")
            self.start_agent()
            return
        told = f": {agent.errors[-1].strip()[:300]}" if agent.errors else ""
        self.conversation.agent_ended(why + told)
        raise HostEnds(why + told, 1)

    def read_keyboard(self) -> None:
        try:
            data = os.read(0, _PIECE)
        except OSError:
            data = b""
        if not data:
            raise HostEnds
        self.keys.feed(data)

    def read_signals(self) -> None:
        received = os.read(self._signals, 256)
        ending = [number for number in _ENDING if number in received]
        if ending:
            raise HostEnds("", 128 + ending[0])
        if signal.SIGWINCH in received:
            self.pane.redraw()
        if signal.SIGCHLD in received and self.agent and self.agent.exit_code is not None:
            # something that it has started may keep its output open for ever
            while self.agent and (data := self.agent.read()):
                for line in self.reader.feed(data):
                    self.conversation.take_line(line)
            self.agent_ended()

    def take_input(self) -> None:
        """Take the prompt that the server offers in the folder; the server presses the key until it sees that."""
        self.keys.rung = False
        try:
            text = (self.folder / editor.INPUT).read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return
        if editor.take(self.folder):
            self.conversation.prompt(text, SERVER)


def _exit_words(code: int | None) -> str:
    if code is None:
        return " its output"
    return f" with exit code {code}" if code >= 0 else f" by signal {-code}"


def _write(data: bytes) -> None:
    """Write to the pane; there is none any more after a hang-up."""
    with suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def _columns() -> int:
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 80


def _signal_pipe() -> int:
    """A descriptor that tells the numbers of signals."""
    reading, writing = os.pipe()
    for descriptor in (reading, writing):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (*_ENDING, signal.SIGCHLD, signal.SIGWINCH):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return reading


def main() -> None:
    """Run the host in this terminal."""
    folder = Path(sys.argv[1])
    try:
        settings = HostSettings.read(folder)
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"{folder}: the settings of the host cannot be read: {error}")
    with raw_terminal(0):
        code = Host(settings, folder).run()
    sys.exit(code)


if __name__ == "__main__":
    main()
