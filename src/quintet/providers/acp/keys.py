"""What the keys do in a host's pane: typing a prompt, cancelling, answering a permission, ending, and the doorbell."""

import time
from typing import Final

from quintet.providers.acp.conversation import PERSON, Conversation, HostEnds
from quintet.providers.acp.view import HostPane
from quintet.providers.keyboard import ESCAPE, Keyboard

EXIT, RENAME = "/exit", "/rename"
"""the host's own commands; everything else is for the agent"""
KEY_SECONDS: Final = 0.05
"""how long after an Escape the rest of a sequence may take"""
_DOORBELL: Final = "\x1d"
_CTRL_C, _CTRL_D, _CTRL_U = "\x03", "\x04", "\x15"
_BACKSPACE: Final = ("\x7f", "\x08")


class Keys:
    """The keyboard of a host."""

    def __init__(self, conversation: Conversation, pane: HostPane) -> None:
        self._conversation, self._pane = conversation, pane
        self._keyboard = Keyboard()
        self._pressed = 0.0
        self.rung = False
        """whether the server has pressed the key that says that a prompt is there"""

    @property
    def waits(self) -> bool:
        return self._keyboard.waits

    def feed(self, data: bytes) -> None:
        """Bytes of the keyboard."""
        self._pressed = time.monotonic()
        for kind, text in self._keyboard.feed(data):
            self._take(kind, text)

    def flush(self) -> None:
        """Where nothing has followed an Escape for a moment, it was one."""
        if time.monotonic() >= self._pressed + KEY_SECONDS:
            for kind, text in self._keyboard.flush():
                self._take(kind, text)

    def _take(self, kind: str, text: str) -> None:
        talk = self._conversation
        if kind == "paste":
            self._edit(self._pane.draft + text)
        elif text == _DOORBELL:
            self.rung = True
        elif text in (ESCAPE, _CTRL_C) and talk.turn is not None:
            talk.cancel()
        elif text == _CTRL_D and not self._pane.draft and (talk.turn is None or talk.is_cancelled):
            raise HostEnds
        elif talk.asked:
            talk.answer_by_key(text)
        else:
            self._type(text)

    def _type(self, text: str) -> None:
        draft = self._pane.draft
        if text in ("\r", "\n"):
            self._edit("")
            self._submit(draft)
        elif text in _BACKSPACE:
            self._edit(draft[:-1])
        elif text in (_CTRL_U, _CTRL_C, ESCAPE):
            self._edit("")
        elif text.isprintable():
            self._edit(draft + text)

    def _edit(self, draft: str) -> None:
        self._pane.draft = draft
        self._pane.redraw()

    def _submit(self, draft: str) -> None:
        word, _, rest = draft.strip().partition(" ")
        if word == EXIT and not rest:
            if self._conversation.turn is None:
                raise HostEnds
            self._pane.dim("The turn is still running: Esc cancels it, and then /exit ends the agent.")
            return
        if word == RENAME and "\n" not in rest:
            self._pane.rename(rest.strip())
        elif word:
            self._conversation.prompt(draft, PERSON)
