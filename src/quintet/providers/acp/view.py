"""The pane of a host, for people: prompts, messages as they come, tools, permissions, errors, and a line to type in.

Nothing that an agent says can steer the terminal. What is printed goes out in one write with each `flush`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from quintet.providers.acp.terminal_text import clean, columns, fold, shorten
from quintet.providers.acp.tools import ToolCall
from quintet.providers.acp.turn import TurnEnd

PROMPT: Final = "› "
TITLE: Final = "quintet acp"
_INDENT: Final = "  "
_BOLD, _DIM, _RED, _GREEN, _YELLOW, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
_PROMPT_LINES: Final = 4
"""lines of a prompt that are shown"""
_OUTPUT_LINES: Final = 6
"""of a failed tool's output"""
_MESSAGE_LINES: Final = 300
"""of one message"""
_NARROWEST: Final = 20
_WIDEST: Final = 120
_VERBS: Final = {"command": "$", "read": "read", "change": "edit", "tool": "tool"}


class HostPane:
    """What a person sees."""

    def __init__(self, write: Callable[[bytes], None], size: Callable[[], int], role: str) -> None:
        self._write, self._size, self._role = write, size, role
        self._out: list[str] = []
        self._state = ""
        self._bottom = ""
        """what the last line shows while no text is typed"""
        self.draft = ""
        self._drawn = False
        """whether the last line is on the screen"""
        self._unfinished = ""
        self._message_lines = 0
        self._thought = ""
        self._is_blank = True
        """whether the last line that was printed is blank"""

    @property
    def width(self) -> int:
        return max(_NARROWEST, min(self._size() - 1, _WIDEST))

    def set_state(self, state: str, bottom: str = "") -> None:
        """What the agent is doing: in the title, which the server reads, and in the last line."""
        if state != self._state:
            self._state = state
            self._out.append(f"\x1b]2;{TITLE} {state} · {shorten(self._role, 60)}\x1b\\")
        if bottom != self._bottom:
            self._bottom = bottom
            self.redraw()

    def rename(self, name: str) -> None:
        """Give the terminal another name."""
        self._role = name or self._role
        state, self._state = self._state, ""
        self.dim(f"This terminal is called {self._role}.")
        self.set_state(state, self._bottom)

    def redraw(self) -> None:
        """Draw the last line anew with the next flush."""
        self._clear_bottom()

    def flush(self) -> None:
        """Put out what has come since the last time."""
        if not self._out and self._drawn:
            return
        self._clear_bottom()
        self._out.append(self._last_line())
        self._drawn = True
        data = "".join(self._out).encode("utf-8", "replace")
        self._out.clear()
        self._write(data)

    def _clear_bottom(self) -> None:
        if self._drawn:
            self._out.append("\r\x1b[K")
            self._drawn = False

    def _last_line(self) -> str:
        bottom = shorten(self._bottom, self.width - (self.width // 2 if self.draft else 0))
        if bottom and not self.draft:
            return f"{_DIM}{bottom}{_PLAIN}"
        before = f"{_DIM}{bottom}{_PLAIN} " if bottom else ""
        room = self.width - columns(bottom) - len(PROMPT) - 1
        return f"{before}{PROMPT}{_draft_in(self.draft, room)}"

    def line(self, text: str = "", style: str = "", indent: str = "") -> None:
        """Print one line of our own, folded."""
        self.end_parts()
        self._print(text, style, indent)

    def _print(self, text: str, style: str = "", indent: str = "") -> None:
        self._clear_bottom()
        for piece in list(fold(clean(text), self.width - columns(indent))) or [""]:
            self._out.append(f"{indent}{style}{piece}{_PLAIN if style else ''}\r\n")
            self._is_blank = not piece
            indent = " " * columns(indent)

    def blank(self) -> None:
        """A blank line, unless there is one."""
        self.end_parts()
        self._space()

    def _space(self) -> None:
        if not self._is_blank:
            self._print("")

    def dim(self, text: str) -> None:
        self.line(text, _DIM, _INDENT)

    def heading(self, text: str) -> None:
        self.line(text, _BOLD)

    def warning(self, text: str) -> None:
        self.line(text, _YELLOW, _INDENT)

    def error(self, text: str) -> None:
        self.line(text, _RED, "✗ ")

    def close(self, last_words: str) -> None:
        """The host ends: what it says about that is the last line on the screen."""
        if last_words:
            self.line(last_words, _RED)
        self._clear_bottom()
        self._write("".join(self._out).encode("utf-8", "replace"))
        self._out.clear()

    def prompt(self, text: str, by: str) -> None:
        """A prompt that begins a turn: its first lines."""
        self.blank()
        lines = clean(text).strip("\n").split("\n")
        for number, line in enumerate(lines[:_PROMPT_LINES]):
            self.line(shorten(line, self.width - 2), _BOLD, "» " if not number else _INDENT)
        if len(lines) > _PROMPT_LINES or len(text) > _PROMPT_LINES * self.width:
            self.dim(f"… {len(lines):,} lines, {len(text):,} characters, from the {by}")
        self.blank()

    def say(self, text: str) -> None:
        """A part of a message: whatever fills a line is printed."""
        self._end_thought()
        if not self._unfinished and not self._message_lines:
            text = text.lstrip("\n")
            self._space()
        self._unfinished += text
        *whole, rest = self._unfinished.split("\n")
        for line in whole:
            self._say_line(line)
        pieces = list(fold(clean(rest), self._room)) if len(rest) > self._room else []
        if pieces and rest.endswith(" ") and not pieces[-1].endswith(" "):
            pieces.append("")  # the line was broken at this blank: what follows is another word
        for piece in pieces[:-1]:
            self._say_line(piece)
        self._unfinished = pieces[-1] if pieces else rest

    @property
    def _room(self) -> int:
        return self.width - len(_INDENT)

    def _say_line(self, line: str) -> None:
        self._message_lines += 1
        if self._message_lines <= _MESSAGE_LINES:
            self._print(line, "", _INDENT)
        elif self._message_lines == _MESSAGE_LINES + 1:
            self._print("… the whole message is in the record", _DIM, _INDENT)

    def end_parts(self) -> None:
        """A message or a thought has ended."""
        self._end_thought()
        if self._unfinished.strip():
            self._say_line(self._unfinished)
        self._unfinished, self._message_lines = "", 0

    def think(self, text: str) -> None:
        """A part of a thought; the beginning of it is shown once it has ended."""
        if self._unfinished:
            self.end_parts()
        if len(self._thought) < 4 * _WIDEST:
            self._thought += text

    def _end_thought(self) -> None:
        thought, self._thought = self._thought, ""
        if thought.strip():
            self._print(shorten(thought.replace("**", ""), self._room - 2), _DIM, f"{_INDENT}· ")

    def tool(self, call: ToolCall) -> None:
        """A tool that has ended."""
        words = self.tool_words(call)
        how = f" (exit code {call.exit_code})" if call.exit_code else ""
        mark, style = ("✗", _RED) if call.failed else ("●", _GREEN)
        if call.refused or not call.has_ended:
            mark, style, how = "○", _DIM, " (not allowed)" if call.refused else " (not ended)"
        self.end_parts()
        self._clear_bottom()
        shown = shorten(words, self._room - len(how))
        self._out.append(f"{style}{mark}{_PLAIN} {shown}{style}{how}{_PLAIN}\r\n")
        self._is_blank = False
        if call.failed:
            for line in [line for line in call.output.split("\n") if line.strip()][-_OUTPUT_LINES:]:
                self._print(shorten(line, self._room - 2), _DIM, _INDENT * 2)

    @staticmethod
    def tool_words(call: ToolCall) -> str:
        """What a call does, in one line."""
        verb = call.kind if call.kind in ("delete", "move", "search", "fetch") else _VERBS[call.action_kind]
        return f"{verb} {call.subject}"

    def ask(self, what: str, options: Sequence[str]) -> None:
        """A question for permission, with its answers."""
        self.blank()
        self.line(f"The agent asks: {what}", _YELLOW)
        for number, option in enumerate(options, 1):
            self.line(f"{number}  {option}", "", _INDENT)

    def turn_end(self, end: TurnEnd, seconds: float) -> None:
        """The last line of a turn: why it failed, what it took."""
        self.end_parts()
        if end.failed:
            self.error(_failure_words(end.failed))
        used = end.usage
        cached = f" ({used.cached:,} cached)" if used.cached else ""
        tokens = f"{used.input:,} tokens read{cached}, {used.output:,} written · " if any(used) else ""
        self.dim(f"{tokens}{seconds:.0f} s")
        self.blank()


def _failure_words(failed: dict[str, Any]) -> str:
    kind = str(failed["kind"]).replace("_", " ")
    until = failed.get("resets_at")
    when = time.strftime(" (until %H:%M)", time.localtime(until)) if until else ""
    return (f"{failed['text']}" if kind in ("other", "interrupted") else f"{kind}: {failed['text']}") + when


def _draft_in(draft: str, room: int) -> str:
    """The end of what is typed; a paste of many lines is told in a few words."""
    lines = draft.count("\n") + 1
    if lines > 1:
        return f"[Pasted {lines} lines, {len(draft)} characters]"
    text = clean(draft)
    while columns(text) > room:
        text = text[max(1, (columns(text) - room) // 2) :]
    return text
