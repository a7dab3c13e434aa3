"""The scripted agent itself: `python -m quintet.providers.scripted.agent --role ROLE --scenario FILE`."""

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from quintet.errors import QuintetError
from quintet.providers.keyboard import Keyboard, raw_terminal
from quintet.providers.scripted import screen_marks
from quintet.providers.scripted.response_file import response_path, write_response
from quintet.providers.scripted.scenario import Action, RoleScript, load_role_script

LONGEST_ECHO = 60
SHOWN_LINES = 40
"""lines of a command's output that are printed"""

TOKENS_TO_BEGIN_WITH = 900
"""what a turn costs beside its prompt and its reply"""
CHARACTERS_PER_TOKEN = 4


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


class _Declined(Exception):  # noqa: N818 - reads as what happened
    """The user has said no."""


class ScriptedAgent:
    """A prompt line, a turn for each prompt, and a record of both."""

    def __init__(self, part: RoleScript, role: str, record: Path | None, after: int = 0) -> None:
        self.part = part
        self.role = role
        self.record = record
        self.keyboard = Keyboard()
        self.draft = ""
        self.pasted = False
        """whether some of the draft was pasted: only what was typed can be a command"""
        self.swallow = part.swallow_enter
        self.turn = after
        self.prompt = ""
        self.context = 0
        """tokens of the conversation so far"""
        self.reply = ""
        self.failed: dict[str, Any] | None = None
        self.slots: dict[str, str] = {"output": "", "exit_code": "0"}

    def run(self) -> None:
        """Read keys until the end."""
        time.sleep(self.part.start_seconds)
        self.out(f"Scripted agent, {self.role}\r\n")
        if self.part.dialog:
            self.out(f"{screen_marks.DIALOG} {self.part.dialog}\r\n")
            self.wait_for_key("t")
        if self.turn:
            self.note(event="resumed", turn=self.turn)
        self.title("ready")
        self.draw_prompt()
        while True:
            for kind, text in self.read(None):
                self.take(kind, text)

    def read(self, seconds: float | None) -> list[tuple[str, str]]:
        """What was typed; nothing where the time is over first."""
        ready, _, _ = select.select([0], [], [], seconds)
        if not ready:
            return []
        data = os.read(0, 1 << 16)
        if not data:
            sys.exit(0)
        return list(self.keyboard.feed(data))

    def take(self, kind: str, text: str) -> None:
        """One paste or key at the prompt."""
        if kind == "paste":
            self.draft += text
            self.pasted = True
            self.draw_prompt()
        elif text in "\r\n":
            if self.swallow > 0:
                self.swallow -= 1
            elif self.draft:
                self.submit()
        elif text == "\x7f":
            self.draft = self.draft[:-1]
            self.draw_prompt()
        elif text == "\x15":
            self.draft, self.pasted = "", False
            self.draw_prompt()
        elif text == "\x03":
            sys.exit(130)
        elif text.isprintable():
            self.draft += text
            self.draw_prompt()

    def submit(self) -> None:
        """The draft becomes a command or a turn."""
        self.prompt, self.draft = self.draft, ""
        pasted, self.pasted = self.pasted, False
        if self.prompt.startswith("/") and not pasted:
            self.out("\r\n")
            self.command(self.prompt)
        else:
            self.turn += 1
            self.swallow = self.part.swallow_enter
            self.note(event="begin", turn=self.turn)
            self.log(event="prompt", text=self.prompt)
            self.out("\r\n")
            self.work()
            self.note(event="end", turn=self.turn, reply=self.reply, usage=self.usage(), failed=self.failed)
        self.title("ready")
        self.draw_prompt()

    def usage(self) -> dict[str, int]:
        """Made up, but as an agent's would be: the whole conversation is read with every turn, most of it cached."""
        before, read = self.context, TOKENS_TO_BEGIN_WITH + _tokens(self.prompt)
        written = _tokens(self.reply)
        self.context = before + read + written
        return {"input_tokens": before + read, "cached_tokens": before, "output_tokens": written}

    def command(self, text: str) -> None:
        """One of the program's own commands."""
        word, _, rest = text.strip().partition(" ")
        if word == "/exit":
            self.out("Bye.\r\n")
            sys.exit(0)
        self.out(f"Renamed to {rest}\r\n" if word == "/rename" else f"Unknown command {word}\r\n")

    def work(self) -> None:
        """One turn."""
        self.reply = ""
        self.failed = None
        self.title("⠿ working")
        self.draw_working()
        with suppress(_Declined):
            self.act(self.part.turn(self.turn))
        self.clear_line()

    def act(self, actions: list[Action]) -> None:
        for action in actions:
            for name in action:
                method = getattr(self, f"do_{name}", None)
                if method is not None:
                    method(action[name], action)

    def do_say(self, text: str, _: Action) -> None:
        self.print(self.fill(text))

    def do_think(self, seconds: float, _: Action) -> None:
        time.sleep(seconds)

    def do_run(self, command: str, _: Action) -> None:
        self.print(f"$ {command}")
        done = subprocess.run(  # noqa: S602 - a scenario's commands are shell lines
            command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        self.slots = {"output": done.stdout.decode(errors="replace").rstrip(), "exit_code": str(done.returncode)}
        self.note(event="action", kind="command", text=command, exit_code=done.returncode)
        self.print("\n".join([*self.slots["output"].split("\n")[-SHOWN_LINES:], f"exit code {done.returncode}"]))

    def do_read(self, name: str, _: Action) -> None:
        try:
            text = Path(name).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            self.print(f"{name}: {error.strerror}")
            return
        self.note(event="action", kind="read", text=name)
        self.print("\n".join([f"read {name}", *text.split("\n")[:SHOWN_LINES]]))

    def do_write(self, file: dict[str, str], _: Action) -> None:
        path = Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"], encoding="utf-8")
        self.note(event="action", kind="change", text=file["path"])
        self.print(f"wrote {path}")

    def do_save_prompt(self, path: str, _: Action) -> None:
        Path(path).write_bytes(self.prompt.encode("utf-8"))

    def do_when(self, wanted: str, action: Action) -> None:
        passed = self.slots["exit_code"] == "0"
        self.act(action.get("then" if passed == (wanted == "pass") else "else", []))

    def do_reply(self, text: str, action: Action) -> None:
        self.reply = self.fill(text)
        path = response_path(self.prompt)
        if path is not None:
            arguments = (path, self.reply, action.get("manner", "file"), float(action.get("seconds", 0.5)))
            if action.get("manner") == "late":
                threading.Thread(target=self.write_response, args=arguments, daemon=True).start()
            else:
                self.write_response(*arguments)
        self.clear_line()
        self.out(f"{screen_marks.ANSWER}\r\n")
        self.print(self.reply)

    def write_response(self, path: Path, text: str, manner: str, seconds: float) -> None:
        """Write the file; like any agent, go on where the system does not let it."""
        try:
            data = write_response(path, text, manner, seconds)
        except OSError as error:
            self.print(f"{path}: {error.strerror}")
            return
        if data is not None:
            self.note(event="action", kind="change", text=str(path))
            self.log(event="written", text=data.decode("utf-8", "surrogateescape"))

    def do_ask_permission(self, what: str, _: Action) -> None:
        if self.ask(f"{screen_marks.PERMISSION} {what}? (y/n)", "y\rn") == "n":
            raise _Declined

    def do_ask_question(self, what: str, _: Action) -> None:
        chosen = self.ask(f"{screen_marks.QUESTION}: {what}", "123456789\r").strip() or "1"
        self.print(f"chosen: {chosen}")

    def ask(self, question: str, answers: str) -> str:
        """Ask the user; like any agent's dialog, this one takes Enter for the first of its options."""
        self.clear_line()
        self.title("question")
        self.out(question)
        key = self.wait_for_key(answers)
        self.clear_line()
        self.title("⠿ working")
        self.draw_working()
        return key

    def do_fail(self, kind: str, action: Action) -> None:
        ends = time.time() + action["seconds"] if "seconds" in action else None
        self.failed = {"kind": kind, "text": f"scripted {kind}", "resets_at": ends}
        self.print(f"error: {kind}")

    def do_hang(self, _: Any, __: Action) -> NoReturn:
        while True:
            time.sleep(60)

    def do_crash(self, _: Any, __: Action) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def do_exit(self, code: int, _: Action) -> NoReturn:
        sys.exit(code)

    def wait_for_key(self, wanted: str) -> str:
        while True:
            for kind, text in self.read(None):
                if kind == "key" and text in wanted:
                    return text

    def fill(self, text: str) -> str:
        """Put the last command's output and exit code into a text, the number of the turn and that of the process."""
        slots = {**self.slots, "turn": str(self.turn), "pid": str(os.getpid())}
        return re.sub(r"\{(output|exit_code|turn|pid)\}", lambda slot: slots[slot[1]], text)

    def note(self, **event: Any) -> None:
        """Add a line to the record; whole lines only, so that a reader never sees half of one."""
        if self.record is not None:
            _append(self.record, event)

    def log(self, **event: Any) -> None:
        """Add a line to the agent's log, which a scenario may ask for: which prompts came, what was replied."""
        if self.part.log:
            _append(Path(self.part.log), {"at": time.time(), "role": self.role, **event})

    def title(self, text: str) -> None:
        self.out(f"\x1b]2;{text} · {self.role}\x1b\\")

    def draw_prompt(self) -> None:
        lines = self.draft.count("\n") + 1
        long = lines > 1 or len(self.draft) > LONGEST_ECHO
        shown = f"[Pasted {lines} lines, {len(self.draft)} characters]" if long else self.draft
        self.clear_line()
        self.out(screen_marks.PROMPT + shown)

    def draw_working(self) -> None:
        self.clear_line()
        self.out(f"{screen_marks.WORKING} on prompt {self.turn}")

    def print(self, text: str) -> None:
        """Say something above the line that shows the work; indented and folded, so that no line reaches the edge."""
        width = max(20, os.get_terminal_size().columns - 4)
        self.clear_line()
        for line in text.expandtabs().split("\n"):
            for piece in textwrap.wrap(line, width, drop_whitespace=False) or [""]:
                self.out(f"{screen_marks.INDENT}{piece}\r\n")
        self.draw_working()

    def clear_line(self) -> None:
        self.out("\r\x1b[K")

    @staticmethod
    def out(text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(1, data) :]


def _append(path: Path, event: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, json.dumps(event).encode() + b"\n")
    os.close(descriptor)


def main() -> None:
    """Run the program in this terminal."""
    parser = argparse.ArgumentParser(prog="scripted agent")
    parser.add_argument("--role", default="agent")
    parser.add_argument("--scenario", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--after", type=int, default=0, help="turns that an earlier agent of this role has begun")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--model", help="accepted like any agent's; there is none")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        part = load_role_script(arguments.scenario, arguments.role)
    except QuintetError as error:
        sys.exit(str(error))
    with raw_terminal(0):
        ScriptedAgent(part, arguments.role, arguments.record, arguments.after).run()


if __name__ == "__main__":
    main()
