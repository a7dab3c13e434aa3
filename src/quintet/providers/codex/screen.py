"""The status of Codex, read from its screen.

Every release draws the same frame from the bottom up: the footer, the composer (`›` at the left edge), above it
the live row while a turn runs, above that the transcript. What an agent writes is indented, so a mark at the
left edge is Codex's own; and it counts only in its place. A dialog takes the composer's place.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from quintet.api.status import TerminalStatus
from quintet.providers.screen import Screen
from quintet.providers.screen_rows import (
    SHELL_PROMPT,
    SPINNER_IN_TITLE,
    ends_in_a_shell,
    is_flush,
    is_shell,
    last_flush,
    last_message,
    rows_of,
)

ACTIVE_WORK_UI_PATTERN = re.compile(
    r"""
    ^(?: ◦\s+(?=\S)
      | •\s+(?: .{0,300}\((?:\d+h[ ])?(?:\d+m[ ])?\d+s(?:[ ]•[ ][^()]{0,40}(?:\besc\b|interrupt|…)|[ ]•[ ]?\w{0,4}$|…$)
             | Working(?:[ ]\((?:\d|…|$)|…$|$) | Reconnecting\.\.\.[ ]\d | Exploring\b ) )
    """,
    re.MULTILINE | re.VERBOSE,
)
"""The live row, `• Working (7s • esc to interrupt)`, cut off where the pane is narrow; or a look around in progress.

Its bullet blinks, and the hollow one has no other use."""

ONE_WORD = re.compile(r"•\s+(?:Working…?|Exploring)$")
"""A whole answer may be that, too."""

KEY_HINT = re.compile(
    r"""
    \s{0,4}(?:press[ ]|use[ ]|hit[ ])?
    (?: \[?(?:enter|return|esc|space|tab|↑|←)[] /·|→↓↑](?!(?:again|esc)\b).{0,120}?
        \b(?:accept|amend|back|cancel|choose|close|confirm|continue|exit|move|navigate|quit|select|skip|submit|toggle)\b
      | \[?y\]?[ ](?:accept|allow|approve|confirm|yes)\b.{0,80}?\[?\bn\]?[ ](?:cancel|decline|deny|no|reject)\b )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""The last row of a dialog: which key does what. Rows below a composer never begin like this.

A key that has to be pressed again is a hint of the composer."""

USER_PREFIX_PATTERN = re.compile(r"^›[ \t]+(?=\S)", re.MULTILINE)
"""What the user typed. A lone `›` is no input, whatever the next row holds."""

CHEVRON = "›"
COMPOSER_GLYPHS = (CHEVRON, "! ")
"""`!` while a shell command is typed."""
COMMAND_TO_CHOOSE = re.compile(r"[› ] /\w")
ACTION_IN_TITLE = re.compile(r"\[ .{1,2} \] Action Required\b")
OPTION = re.compile(r"\s{0,2}[›>❯]\s+\d{1,2}\. \S")
OTHER_OPTION = re.compile(r"\s{2,6}(?:\d{1,2}\. )?\S")
FOOTER = re.compile(r"\d{1,3}% (?:context )?left|\? for shortcuts")
DETAIL = "  └ "
LIVE_DETAIL = re.compile(rf"{DETAIL}|    |  \d+ background ")
NOTE = re.compile(r"\s+(?:└ )?Tip: |  \d+ background terminal")
"""What stands between an answer and the composer."""
QUEUED = "  ↳ "
QUEUE_FOOTER = "  tab to queue"
BOX = ("│", "╰")
HEADER = re.compile(r"\s{1,4}>_ OpenAI Codex\b")
HEADER_DETAIL = re.compile(r"\s{4,}\S|\s{2}\w+:\s")
ANSWER, FAILURE = "•", "■"
END_OF_TURN = re.compile(r"  (?:Worked for [^•]{1,40}(?: • )?)?(?:\d{1,2}:\d\d(?: [AP]M)?)?$")


def read_screen(screen: Screen) -> TerminalStatus:
    """The status that this frame shows; `unknown` where it shows neither a composer nor a dialog."""
    if is_shell(screen.command):
        return TerminalStatus.ERROR
    rows = rows_of(screen.text)
    chevron = next((at for at in range(len(rows) - 1, -1, -1) if rows[at].startswith(COMPOSER_GLYPHS)), -1)
    if not screen.command and _shell_is_back(rows, chevron):
        return TerminalStatus.ERROR
    if ACTION_IN_TITLE.match(screen.title) or _is_dialog(rows, chevron):
        return TerminalStatus.WAITING_USER_ANSWER
    if SPINNER_IN_TITLE.search(screen.title):
        return TerminalStatus.PROCESSING
    if not _is_composer(rows, chevron):
        is_at_work = _is_at_work(rows, len(rows), titled=bool(screen.title))
        return TerminalStatus.PROCESSING if is_at_work else TerminalStatus.UNKNOWN
    end = _end_of_transcript(rows, chevron)
    if _is_at_work(rows, end, titled=bool(screen.title)) or _would_queue(rows, chevron):
        return TerminalStatus.PROCESSING
    if not _has_had_a_turn(rows, end):
        return TerminalStatus.IDLE
    # Without a title there is still the mark that the newer releases, which have the alternate screen, set at the end.
    if not screen.title and _lacks_its_end(rows, end, is_marked=screen.alternate):
        return TerminalStatus.PROCESSING
    return TerminalStatus.COMPLETED


def screen_overrides_record(screen: Screen) -> bool:
    """Whether work that the screen shows is no answer that looks like it: a title without a spinner speaks against it.

    Releases before 0.121 have no spinner; their record is the better witness then.
    """
    return not screen.title or SPINNER_IN_TITLE.search(screen.title) is not None


def read_reply(text: str) -> str:
    """The last answer in the scrollback; empty where the last turn has none."""
    rows = text.rstrip().split("\n")
    composer = next((at for at in range(len(rows) - 1, -1, -1) if rows[at].startswith(COMPOSER_GLYPHS)), len(rows))
    end = composer
    while end > 0 and (not rows[end - 1].strip() or _ends_turn(rows[end - 1].rstrip()) or NOTE.match(rows[end - 1])):
        end -= 1
    asked = next((at for at in range(end - 1, -1, -1) if USER_PREFIX_PATTERN.match(rows[at])), 0)
    return last_message(rows[asked:end], (ANSWER,), DETAIL)


def _shell_is_back(rows: Sequence[str], chevron: int) -> bool:
    """Whether a shell has written below the composer, or nothing but a shell is there."""
    if chevron < 0:
        return ends_in_a_shell(rows)
    return any(SHELL_PROMPT.match(row) for row in rows[chevron + 1 :])


def _is_dialog(rows: Sequence[str], chevron: int) -> bool:
    # In a narrow pane the keys take two rows.
    if any(KEY_HINT.match(" ".join(rows[-count:])) for count in (1, 2)):
        return True
    # A small pane may cut the keys off. A draft that looks like an option still has the footer below a gap.
    return chevron >= 0 and bool(OPTION.match(rows[chevron])) and _all_options(rows[chevron + 1 :])


def _all_options(rows: Sequence[str]) -> bool:
    return any(OTHER_OPTION.match(row) for row in rows) and all(OTHER_OPTION.match(row) for row in rows)


def _is_composer(rows: Sequence[str], chevron: int) -> bool:
    """Whether the last chevron is the composer: below it are only its draft, the footer or a list to choose from."""
    return chevron >= 0 and not any(is_flush(row) and not FOOTER.search(row) for row in rows[chevron + 1 :])


def _end_of_transcript(rows: Sequence[str], composer: int) -> int:
    """Where the rows end that are neither the composer nor the slash commands to choose from above it."""
    if not rows[composer].startswith("› /"):
        return composer
    end = composer
    while end > 0 and (not rows[end - 1] or COMMAND_TO_CHOOSE.match(rows[end - 1])):
        end -= 1
    return end


def _is_at_work(rows: Sequence[str], composer: int, *, titled: bool) -> bool:
    """Whether the live row is there, directly above the composer and what is queued."""
    at = last_flush(rows, composer)
    while at >= 0 and any(row.startswith(QUEUED) for row in rows[at + 1 : composer]):
        if ACTIVE_WORK_UI_PATTERN.match(rows[at]):
            return True
        composer, at = at, last_flush(rows, at)
    if at < 0:
        return False
    found = ACTIVE_WORK_UI_PATTERN.match(rows[at])
    if found is None or (found[0].endswith("Exploring") and found.end() < len(rows[at])):
        # An answer may begin with the word; Codex writes it alone.
        return False
    if titled and ONE_WORD.match(rows[at]) and not any(row.startswith(DETAIL) for row in rows[at + 1 : at + 2]):
        return False
    below = [row for row in rows[at + 1 : composer] if row and not LIVE_DETAIL.match(row)]
    # A release may add a row of its own; an answer that begins with a quoted live row goes on after it.
    return len(below) <= 1 and not any(map(_ends_turn, below))


def _would_queue(rows: Sequence[str], composer: int) -> bool:
    """Whether the footer says that a draft would have to wait for the turn to end."""
    below = range(len(rows) - 1, composer, -1)
    return any(rows[at].startswith(QUEUE_FOOTER) for at in takewhile(lambda at: bool(rows[at]), below))


def _lacks_its_end(rows: Sequence[str], composer: int, *, is_marked: bool) -> bool:
    """Whether the release marks the ends of turns, as an earlier turn may show, and the last turn has no mark."""
    asked = next((at for at in range(composer - 1, -1, -1) if USER_PREFIX_PATTERN.match(rows[at])), 0)
    if any(row.startswith(FAILURE) or _ends_turn(row) for row in rows[asked:composer]):
        return False
    return is_marked or any(_ends_turn(row) for row in rows[:asked])


def _ends_turn(row: str) -> bool:
    return bool(row) and END_OF_TURN.match(row) is not None


def _has_had_a_turn(rows: Sequence[str], composer: int) -> bool:
    header = next((at for at in range(composer - 1, -1, -1) if _is_header(rows, at)), -1)
    if header < 0:
        return any(rows[:composer])
    # Notices and the answers of slash commands begin like an agent's, so only what was asked counts here.
    return any(USER_PREFIX_PATTERN.match(row) or row.startswith(FAILURE) for row in rows[header:composer])


def _is_header(rows: Sequence[str], at: int) -> bool:
    """Whether Codex introduces itself here: in a box, or in a paragraph of its own that no answer contains."""
    if rows[at].startswith(BOX):
        return True
    if not HEADER.match(rows[at]) or (at > 0 and rows[at - 1].startswith(" ")):
        return False
    above = last_flush(rows, at)
    if rows[above].startswith((ANSWER, CHEVRON)) if above >= 0 else any(rows[:at]):
        return False
    return all(HEADER_DETAIL.match(row) for row in takewhile(bool, rows[at + 1 :]))
