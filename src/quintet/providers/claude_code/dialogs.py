"""What Claude Code asks before it takes prompts."""

import re
from typing import Final

from quintet.providers.screen_rows import rows_of
from quintet.providers.startup_dialogs import KnownDialog

TRUST: Final = KnownDialog(
    re.compile(r"one you trust\?|Do you trust the files in this folder\?|trust the (?:files|contents)"),
    answer=re.compile(r"Yes, (?:I trust|proceed|continue)"),
    message="Claude Code asks whether it may trust the working directory; answer in its terminal",
)
BYPASS: Final = KnownDialog(
    re.compile(r"Bypass Permissions mode\b.{0,1500}\bYes, I accept"),
    answer=re.compile(r"Yes, I accept"),
    message="Claude Code asks whether it may work without permission prompts; answer in its terminal",
)
_KEY = re.compile(r"Detected a custom API key\b.{0,600}\bDo you want to use this API key\?")
_ASKS_FOR_KEY = "Claude Code asks whether to use the API key in its environment; answer in its terminal"
KEY_ALONE: Final = KnownDialog(_KEY, answer=re.compile(r"Yes\b"), message=_ASKS_FOR_KEY)
"""without a login the key is the only way in"""
KEY_OR_LOGIN: Final = KnownDialog(_KEY, message=_ASKS_FOR_KEY)
"""with one the answer decides who pays"""
KNOWN: Final = (
    KnownDialog(
        re.compile(r"Settings Error\b"), message="Claude Code finds an error in a settings file; see its terminal"
    ),
    TRUST,
    BYPASS,
    KnownDialog(
        re.compile(r"Select login method|Browser didn't open\?|Paste code here if prompted|Please run /login"),
        message="Claude Code is not logged in; run `claude`, log in and start again, or log in in its terminal",
    ),
    KnownDialog(
        re.compile(r"Choose the text style that looks best|Let's get started\."),
        message="Claude Code was never used here; run `claude` once to set it up, then start again",
    ),
    KnownDialog(re.compile(r"Press Enter to continue…?$"), keys=("Enter",)),
)

OFFER: Final = re.compile(r"What do you want to do\?.{0,200}\bStop and wait for limit to reset\b")
"""What a subscription may do at its limit. Waiting is what happens anyway."""

_PERMISSION = re.compile(
    r"""
    ^[ ]Do[ ]you[ ]want[ ]to[ ](?!use[ ]this[ ]API[ ]key)[^?\n]{1,200}
    (?:\n[ ][^?\n]{1,200}){0,4}\?      # the name of a file may take more rows
    \n{1,3}[ ][ ❯][ ]1\.[ ]Yes$
    """,
    re.VERBOSE | re.MULTILINE,
)
_QUESTION_KEYS = re.compile(r"\bEnter to (?:select|confirm)\b")


def asks_for_permission(text: str) -> bool:
    """Whether the dialog is an approval, of a command or of edits: a plain yes is its first option.

    That of a plan says what follows from it; and a question that the agent asks stands at the left edge, whatever
    the agent has put into it.
    """
    rows = rows_of(text)
    return not _QUESTION_KEYS.search(" ".join(rows[-2:])) and _PERMISSION.search("\n".join(rows)) is not None


OTHER: Final = "Claude Code asks something that only you can answer; look at its terminal"
