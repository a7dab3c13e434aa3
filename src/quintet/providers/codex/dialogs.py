"""What Codex asks before it takes prompts."""

import re
from typing import Final

from quintet.providers.screen_rows import rows_of
from quintet.providers.startup_dialogs import KnownDialog

KNOWN: Final = (
    KnownDialog(
        re.compile(r"Update available\b.{0,400}\bSkip\b"),
        answer=re.compile(r"Skip$"),
        message="Codex offers an update; decline it in its terminal",
    ),
    KnownDialog(
        re.compile(
            r"Do you trust the contents of this directory\?|Trust this folder\?|allow Codex to work in this folder"
        ),
        answer=re.compile(r"Yes, continue|Trust and continue|Yes, allow Codex|Yes\b"),
        message="Codex asks whether it may trust the working directory; answer in its terminal",
    ),
    KnownDialog(
        re.compile(r"Sign in with ChatGPT\b.{0,400}(?:API key|Device Code)"),
        message="Codex is not logged in; run `codex login` and start again, or log in in its terminal",
    ),
    KnownDialog(
        re.compile(r"\bUse existing model\b"),
        answer=re.compile(r"Use existing model"),
        message="Codex asks which model to use; choose one in its terminal",
    ),
    KnownDialog(
        re.compile(r"\bhooks? (?:need|needs|require|requires)\b.{0,40}\breview\b", re.IGNORECASE),
        message="Codex asks whether it may trust new hooks; answer in its terminal",
    ),
)

_PERMISSION = re.compile(r"^[› ] 1\. Yes, [^()\n]{1,80} \(y\)$", re.MULTILINE)
_PERMISSION_KEYS = "Press enter to confirm or esc to cancel"


def asks_for_permission(text: str) -> bool:
    """Whether the dialog is an approval, of a command or of edits: its first option names the key that says yes.

    An agent's own question has options of the agent's choice, but other keys in its last row.
    """
    rows = rows_of(text)
    keys = " ".join(" ".join(rows[-2:]).split())  # two rows in a narrow pane
    return keys.endswith(_PERMISSION_KEYS) and _PERMISSION.search("\n".join(rows)) is not None


_LOADING = re.compile(r"│ model:\s+loading\b")
_HEADER = re.compile(r"\s{1,4}>_ OpenAI Codex \(v")


def is_starting(text: str) -> bool:
    """Whether this is one of the first frames: a composer is drawn, but a dialog may still take its place.

    Such a frame says that the model is being loaded, or it has nothing but the directory below the header and no
    footer below the composer.
    """
    rows = [row for row in rows_of(text) if row]
    if any(_LOADING.match(row) for row in rows):
        return True
    # what Codex has warned of before it began to draw may stand above
    first = rows[-_FIRST_ROWS:]
    return len(first) == _FIRST_ROWS and bool(_HEADER.match(first[0])) and first[-1].startswith("›")


_FIRST_ROWS: Final = 3
OTHER: Final = "Codex asks something that only you can answer; look at its terminal"
