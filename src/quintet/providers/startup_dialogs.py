"""Start-up dialogs: what is asked, and the keys that lead to an answer.

Only the highlighted option is ever confirmed: a dialog that does not follow the arrow keys is left as it is, and no
digit is typed into something that has meanwhile become a composer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.base import Dialog
from quintet.providers.screen_rows import rows_of

_HIGHLIGHTED = re.compile(r"│?\s{0,3}[›❯>]\s+(?:\d{1,2}\. )?(?=\S)")
_PLAIN = re.compile(r"│?\s{2,6}(?:\d{1,2}\. )?(?=\S)")
"""an option, in some releases within a box"""
_TOPS = ("╭", "──", "▔▔")
_REACH = 12
"""rows that the options of a dialog span"""


@dataclass(frozen=True)
class KnownDialog:
    """A dialog that some release shows."""

    text: re.Pattern[str]
    """what it says"""
    answer: re.Pattern[str] | None = None
    """how the option begins that we choose"""
    keys: tuple[str, ...] = ()
    """the keys that answer a dialog without options"""
    message: str = ""
    """what the user must do, where we must not choose"""


def find_startup_dialog(text: str, status: TerminalStatus, known: Sequence[KnownDialog], other: str) -> Dialog | None:
    """The first known dialog on a screen, with the keys for the next step towards its answer.

    Where the agent asks anything else, `other` tells the user.
    """
    if status in AT_REST:
        return None
    rows = last_dialog(rows_of(text))
    shown = " ".join(" ".join(rows).split())
    for dialog in known:
        if dialog.text.search(shown):
            if dialog.answer is None:
                return Dialog(keys=dialog.keys, message=dialog.message)
            keys = keys_towards(rows, dialog.answer)
            return Dialog(keys=keys, message="" if keys else dialog.message)
    return Dialog(message=other) if status is TerminalStatus.WAITING_USER_ANSWER else None


def last_dialog(rows: Sequence[str]) -> Sequence[str]:
    """The rows below the last rule or the top of the last box: dialogs that were answered may be above."""
    top = next((at for at in range(len(rows) - 1, -1, -1) if rows[at].startswith(_TOPS)), -1)
    return rows[top + 1 :]


def keys_towards(rows: Sequence[str], answer: re.Pattern[str]) -> tuple[str, ...]:
    """Enter where the option is highlighted, else the arrow key in its direction; nothing where it is not there."""
    here = next((at for at in range(len(rows) - 1, -1, -1) if _HIGHLIGHTED.match(rows[at])), None)
    if here is None:
        return ()
    found = _HIGHLIGHTED.match(rows[here])
    if found is not None and answer.match(rows[here], found.end()):
        return ("Enter",)
    for at in range(max(here - _REACH, 0), min(here + _REACH, len(rows))):
        found = _PLAIN.match(rows[at])
        if at != here and found is not None and answer.match(rows[at], found.end()):
            return ("Down",) if at > here else ("Up",)
    return ()
