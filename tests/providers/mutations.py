"""Changes to a frame that leave the truth about the agent as it was."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from quintet.providers.screen import Screen
from tools.screens import Recording

MISLEADING = (
    "Working (12s • esc to interrupt)",
    "• Working (3s • esc to interrupt)",
    "◦ Exploring",
    "• Exploring",
    "✻ Pondering… (5s · ↓ 120 tokens · esc to interrupt)",
    "› 1. Yes, proceed (y)",
    "❯ 1. Yes",
    "Press enter to confirm or esc to cancel",
    "Do you want to proceed?",
    "› ",
    "❯ ",
    "user@host:~/proj$ ",
    ">_ OpenAI Codex (v0.999.0)",
    "Claude Code v9.9.9",
    "API Error: 500, Traceback, Killed, usage limit reached",
    "100% context left · ? for shortcuts",
    "Worked for 5s • 06:12",
    "⠋ still running, still exploring",
)
BEGINNINGS = (
    "All checks passed (12s • 40 tests)",
    "Working",
    "Working…",
    "Working on it (for 5s)",
    "Exploring",
    "Step took long (5s…)",
    "Reconnecting to the database took 3s…",
    "Pondering… (5s · ↓ 120 tokens)",
    "Retrying in 5s",
    "Baked for 5s",
    "Press enter to confirm or esc to cancel",
)
ANSWERS = ("•", "●", "⏺")
DRAFTS = (
    "1. Yes, press enter to confirm or esc to cancel",
    "• Working (3s • esc to interrupt)",
    "why does it say esc to interrupt…",
    "user@host:~/proj$ make",
    "› ❯ > ─── Retrying in 3s",
)
WITH_COMPOSER = ("idle", "processing", "completed", "interrupted", "error_turn")
BUSY_FOOTER = re.compile(r" · esc to interrupt(?=[^\n]*$)")
INDENTED_TEXT = re.compile(r"  (?=[A-Z0-9])\S")
COLUMNS_OF_A_NARROW_PANE = 40

Mutation = Callable[[Recording], Screen | None]
"""None where the change makes no sense for the frame."""


def composer_row(recording: Recording, rows: list[str]) -> int | None:
    """Where the composer's first row is, for a frame that has one."""
    if recording.state_label not in WITH_COMPOSER:
        return None
    glyphs = ("›",) if recording.cli == "codex" else (">", "❯")
    found = [at for at, row in enumerate(rows) if row.startswith(glyphs)]
    return found[-1] if found else None


def blank_rows_below(recording: Recording) -> Screen:
    return replace(recording.frame, text=recording.screen + "\n" * 25)


def blanks_at_the_right(recording: Recording) -> Screen:
    return replace(recording.frame, text="\n".join(f"{row:<240}" for row in recording.screen.split("\n")))


def line_ends_of_a_file(recording: Recording) -> Screen:
    return replace(recording.frame, text=recording.screen.replace("\n", "\r\n"))


def scrolled(recording: Recording) -> Screen | None:
    """The rows further up are out of sight: the last turn's beginning, but not the live rows nor a dialog."""
    rows = recording.screen.rstrip().split("\n")
    at = composer_row(recording, rows)
    if at is None or recording.state_label == "idle":
        return None
    written = [row for row in range(at) if rows[row].strip()]
    return replace(recording.frame, text="\n".join(rows[written[-8:][0] :])) if written else None


def in_a_tall_pane(recording: Recording) -> Screen | None:
    if recording.state_label == "idle":
        return None
    lines = itertools.islice(itertools.cycle(MISLEADING), 160)
    return replace(recording.frame, text="".join(f"  {line}\n" for line in lines) + recording.screen)


def in_a_narrow_pane(recording: Recording) -> Screen | None:
    """Cut, not wrapped, at the right edge."""
    if recording.state_label == "exited":
        return None
    rows = [row[:COLUMNS_OF_A_NARROW_PANE] for row in recording.screen.split("\n")]
    return replace(recording.frame, text="\n".join(rows))


def other_words(recording: Recording) -> Screen | None:
    """What the agent wrote is replaced with everything that misleads."""
    rows = recording.screen.split("\n")
    at = composer_row(recording, rows)
    if at is None:
        return None
    words = itertools.cycle(MISLEADING)
    # The rows of the live row and its tips are the CLI's own, and so are those of its header.
    changed = [
        f"  {next(words)}" if INDENTED_TEXT.match(row) and "Tip:" not in row and not _is_end_of_turn(row) else row
        for row in rows[:at]
    ]
    return replace(recording.frame, text="\n".join([*changed, *rows[at:]]))


def other_first_words(recording: Recording) -> Screen | None:
    """The answer of a turn that has ended begins with what misleads, in the row with the mark."""
    rows = recording.screen.split("\n")
    at = composer_row(recording, rows)
    if at is None or recording.state_label != "completed":
        return None
    answer = next((row for row in range(at - 1, -1, -1) if rows[row].startswith(ANSWERS)), None)
    if answer is None:
        return None
    rows[answer] = f"{rows[answer][0]} {BEGINNINGS[len(recording.screen) % len(BEGINNINGS)]}"
    return replace(recording.frame, text="\n".join(rows))


def _is_end_of_turn(row: str) -> bool:
    return bool(re.match(r"  (?:Worked for|\d\d:\d\d)", row))


def draft_typed(recording: Recording) -> Screen | None:
    """Claude Code takes its `esc to interrupt` away while there is a draft."""
    rows = recording.screen.split("\n")
    at = composer_row(recording, rows)
    if at is None:
        return None
    draft = DRAFTS[len(recording.screen) % len(DRAFTS)]
    rows[at] = f"{rows[at][0]} {draft}"
    rows.insert(at + 1, "  2. and a second line of it")
    rows[at + 2 :] = [BUSY_FOOTER.sub("", row) for row in rows[at + 2 :]]
    return replace(recording.frame, text="\n".join(rows))


def title_missing(recording: Recording) -> Screen:
    return replace(recording.frame, title="")


def command_missing(recording: Recording) -> Screen:
    return replace(recording.frame, command="")


def both_missing(recording: Recording) -> Screen:
    return replace(recording.frame, title="", command="")


LAYOUT: tuple[Mutation, ...] = (
    blank_rows_below,
    blanks_at_the_right,
    line_ends_of_a_file,
    scrolled,
    in_a_tall_pane,
    in_a_narrow_pane,
)
CONTENT: tuple[Mutation, ...] = (other_words, other_first_words, draft_typed)


def mutated(recordings: Iterable[Recording], mutation: Mutation) -> Iterator[tuple[Recording, Screen]]:
    """Each recording that can be changed so, with its changed screen."""
    for recording in recordings:
        frame = mutation(recording)
        if frame is not None:
            yield recording, frame
