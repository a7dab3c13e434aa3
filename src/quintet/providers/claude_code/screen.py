"""The status of Claude Code, read from its screen.

Every release draws the same frame from the bottom up: the footer, the composer (a prompt glyph between two
rules), above it the live row while a turn runs (not always while an answer streams: then the footer tells), above
that the transcript. What an agent writes is indented, so a mark at the left edge is Claude Code's own; and it
counts only in its place. A dialog takes the composer's place.
"""

import re
from collections.abc import Sequence

from quintet.api.status import TerminalStatus
from quintet.providers.screen import Screen
from quintet.providers.screen_rows import (
    SHELL_PROMPT,
    SPINNER_IN_TITLE,
    ends_in_a_shell,
    is_shell,
    last_flush,
    last_message,
    rows_of,
)

SPINNER = r"[^\w\s●⏺○❯>›⎿└│╭╰─═╌▔∴■☐☒✓✔✗✘⚠※◇◆⧉⏵⏸!?#$/]"
"""A glyph of the spinner; each release has its own, so it is any glyph but those of the transcript."""

LIVE_ROW = re.compile(SPINNER + r" (?=\S)(?:\w{1,40}\.\.\.(?: \(|$)|.{0,300}?(?:…|\bRetrying in \d))")
"""`✻ Pondering… (5s · ↓ 120 tokens)`, or that a request is tried again."""

BUSY_FOOTER = re.compile(r"(?:^\s{0,6}|· )esc to(?: i| ?…)")
"""`esc to interrupt`, cut off where the pane is narrow; a status line of the user's own may contain the words."""

ROOM_FOR_BUSY_FOOTER = len(" · esc to…  ")

END_OF_TURN = re.compile(SPINNER + r" \w{1,40} for (?:\d+[dhm] ){0,3}\d+[smh]\b")
"""`✻ Baked for 5s`"""
END_OF_SHORT_TURN = re.compile(SPINNER + r" \w{1,40} for [12]?\ds\b")
"""Some releases mark only those that took half a minute or more."""
INTERRUPTED = re.compile(r"\s{1,6}⎿\s{1,4}Interrupted\b")

RULE = "──"
PROMPT_GLYPHS = ("❯", ">", "!", "#")
USER_ROW = re.compile(r"[❯>]\s+(?=[^\s/])")
ANSWER_GLYPHS = ("●", "⏺")
TOOL_DETAIL = "  ⎿"
OPTION = re.compile(r"\s?❯\s+\d{1,2}\. \S")
"""The chosen option of a dialog; one that an answer quotes is indented further."""
KEYS = re.compile(r"\b(?:enter|esc)\b\S{0,3} to \w|\bpress enter\b", re.IGNORECASE)
CUT_OUT = "[...Truncated text #"
LOGO_OR_BOX = re.compile(r"[╭│╰]|[ *]{0,4}[▐▝▘▛▜]")


def read_screen(screen: Screen) -> TerminalStatus:
    """The status that this frame shows; `unknown` where it shows neither a composer nor a dialog."""
    if is_shell(screen.command):
        return TerminalStatus.ERROR
    rows = rows_of(screen.text)
    composer = _find_composer(rows)
    if not screen.command and _shell_is_back(rows, composer):
        return TerminalStatus.ERROR
    if composer is None:
        return _read_without_composer(rows, screen.title)
    top, bottom = composer
    if SPINNER_IN_TITLE.search(screen.title) or _is_at_work(rows, top) or _footer_is_busy(rows, bottom):
        return TerminalStatus.PROCESSING
    if not _has_had_a_turn(rows[:top]):
        return TerminalStatus.IDLE
    # The releases with the alternate screen may keep their title still, so neither title nor footer may have told.
    if (screen.alternate or not screen.title) and _footer_cannot_tell(rows, top, bottom):
        is_running = _lacks_its_end(rows[:top], is_marked=screen.alternate)
        return TerminalStatus.PROCESSING if is_running else TerminalStatus.COMPLETED
    return TerminalStatus.COMPLETED


def read_reply(text: str) -> str:
    """The last answer in the scrollback; empty where the last turn has none."""
    rows = text.rstrip().split("\n")
    composer = _find_composer(rows)
    above = rows[: composer[0]] if composer is not None else rows
    asked = next((at for at in range(len(above) - 1, -1, -1) if USER_ROW.match(above[at])), 0)
    return last_message(above[asked:], ANSWER_GLYPHS, TOOL_DETAIL)


def shows_part_of(screen: Screen, text: str) -> bool:
    """Whether the composer holds a text that it shows only in part: cut in the middle, or scrolled to its end."""
    rows = rows_of(screen.text)
    composer = _find_composer(rows)
    if composer is None:
        return False
    shown = [" ".join(row.lstrip("".join(PROMPT_GLYPHS)).split()) for row in rows[composer[0] + 1 : composer[1]]]
    if any(CUT_OUT in row for row in shown):
        return True
    whole = " ".join(text.split())
    found = [row in whole for row in shown if row]
    # a terminal may draw an emoji otherwise than it was written
    return len(found) > 1 and 2 * sum(found) > len(found)


def _find_composer(rows: Sequence[str]) -> tuple[int, int] | None:
    """The two rules around the composer."""
    bottom = None
    for at in range(len(rows) - 1, -1, -1):
        if rows[at].startswith(RULE):
            if bottom is not None and rows[at + 1].startswith(PROMPT_GLYPHS):
                return at, bottom
            bottom = at
    return None


def _read_without_composer(rows: Sequence[str], title: str) -> TerminalStatus:
    if KEYS.search(" ".join(rows[-2:])) or any(OPTION.match(row) for row in rows):
        return TerminalStatus.WAITING_USER_ANSWER
    if SPINNER_IN_TITLE.search(title) or _is_at_work(rows, len(rows)):
        return TerminalStatus.PROCESSING
    return TerminalStatus.UNKNOWN


def _shell_is_back(rows: Sequence[str], composer: tuple[int, int] | None) -> bool:
    """Whether a shell has written below or over the composer, or nothing but a shell is there."""
    if composer is not None:
        return any(SHELL_PROMPT.match(row) for row in rows[composer[1] + 1 :])
    rule = next((at for at in range(len(rows) - 1, -1, -1) if rows[at].startswith(RULE)), -1)
    if rule >= 0 and rows[rule + 1 : rule + 2] and rows[rule + 1].startswith(PROMPT_GLYPHS):
        return any(SHELL_PROMPT.match(row) for row in rows[rule + 2 :])
    return ends_in_a_shell(rows)


def _is_at_work(rows: Sequence[str], composer: int) -> bool:
    """Whether the live row is the last mark above the composer: tips, tasks and queued prompts are indented."""
    at = last_flush(rows, composer)
    return at >= 0 and LIVE_ROW.match(rows[at]) is not None


def _footer_is_busy(rows: Sequence[str], bottom: int) -> bool:
    return any(BUSY_FOOTER.search(row) for row in rows[bottom + 1 :])


def _footer_cannot_tell(rows: Sequence[str], top: int, bottom: int) -> bool:
    """Whether `esc to interrupt` would be left out: a draft takes it away, and a narrow pane has no room for it."""
    has_draft = any(row.lstrip("".join(PROMPT_GLYPHS)).strip() for row in rows[top + 1 : bottom])
    footer = next((row for row in rows[bottom + 1 :] if row), "")
    # What stands at the right makes room.
    left = footer[: len(footer) - len(footer.lstrip())] + footer.strip().split("   ", 1)[0]
    return has_draft or len(left) + ROOM_FOR_BUSY_FOOTER > len(rows[top])


def _lacks_its_end(above: Sequence[str], *, is_marked: bool) -> bool:
    """Whether the release marks the end of every turn, as an earlier one may show, and the last has no mark."""
    asked = next((at for at in range(len(above) - 1, -1, -1) if USER_ROW.match(above[at])), 0)
    if any(END_OF_TURN.match(row) or INTERRUPTED.match(row) for row in above[asked:]):
        return False
    return is_marked or any(END_OF_SHORT_TURN.match(row) for row in above[:asked])


def _has_had_a_turn(above: Sequence[str]) -> bool:
    if any(USER_ROW.match(row) or row.startswith(ANSWER_GLYPHS) or END_OF_TURN.match(row) for row in above):
        return True
    # A slash command is no turn; and a screen that shows no beginning shows the rest of a long answer.
    first = next((row for row in above if row), "")
    return bool(first) and not first.startswith(PROMPT_GLYPHS) and not any(LOGO_OR_BOX.match(row) for row in above)
