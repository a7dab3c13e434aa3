"""Reads the keyboard: typed keys and bracketed pastes are different events."""

import codecs
import os
import re
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

PASTE_BEGINS: Final = b"\x1b[200~"
PASTE_ENDS: Final = b"\x1b[201~"
ESCAPE: Final = "\x1b"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~])")
"""an arrow, a function key and their like"""
_BEGUN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?")
_LONGEST_SEQUENCE: Final = 32


@contextmanager
def raw_terminal(descriptor: int) -> Iterator[None]:
    """Every key by itself, and pastes in brackets."""
    before: list[Any] = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    mode = termios.tcgetattr(descriptor)
    mode[0] &= ~(termios.ICRNL | termios.IXON)
    mode[3] &= ~termios.ISIG
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)
    os.write(1, b"\x1b[?2004h")
    try:
        yield
    finally:
        with suppress(OSError, termios.error):  # after a hang-up there is no terminal any more
            os.write(1, b"\x1b[?2004l")
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


class Keyboard:
    """Bytes in, events out: `("key", character)` and `("paste", text)`. An arrow is one key of several characters."""

    def __init__(self) -> None:
        self._rest = b""
        self._paste: bytearray | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Iterator[tuple[str, str]]:
        """What these bytes complete."""
        self._rest += data
        while self._rest:
            if self._paste is not None:
                text = self._read_paste(self._paste)
                if text is None:
                    return
                yield "paste", text
            elif self._rest.startswith(PASTE_BEGINS):
                self._rest = self._rest[len(PASTE_BEGINS) :]
                self._paste = bytearray()
            elif sequence := _SEQUENCE.match(self._rest):
                self._rest = self._rest[sequence.end() :]
                yield "key", sequence[0].decode("ascii")
            elif _BEGUN.fullmatch(self._rest) and len(self._rest) < _LONGEST_SEQUENCE:
                return  # more of it may be on its way
            else:
                yield from self._read_keys(1)

    @property
    def waits(self) -> bool:
        """Whether an Escape was pressed, or a sequence that begins with one has begun."""
        return bool(self._rest) and self._paste is None

    def flush(self) -> Iterator[tuple[str, str]]:
        """Nothing has followed: what waits was keys."""
        if self.waits:
            yield from self._read_keys(len(self._rest))

    def _read_keys(self, size: int) -> Iterator[tuple[str, str]]:
        data, self._rest = self._rest[:size], self._rest[size:]
        yield from (("key", character) for character in self._decoder.decode(data))

    def _read_paste(self, paste: bytearray) -> str | None:
        end = self._rest.find(PASTE_ENDS)
        if end < 0:
            kept = len(PASTE_ENDS) - 1
            paste += self._rest[:-kept]
            self._rest = self._rest[-kept:]
            return None
        paste += self._rest[:end]
        self._rest = self._rest[end + len(PASTE_ENDS) :]
        self._paste = None
        return paste.decode("utf-8", "replace")
