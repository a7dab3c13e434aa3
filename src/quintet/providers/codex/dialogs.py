"""What Codex asks before it takes prompts."""

import re
from typing import Final

from quintet.providers.choices import Known

KNOWN: Final = (
    Known(
        re.compile(r"Update available\b.{0,400}\bSkip\b"),
        answer=re.compile(r"Skip$"),
        message="Codex offers an update; decline it in its terminal",
    ),
    Known(
        re.compile(
            r"Do you trust the contents of this directory\?|Trust this folder\?|allow Codex to work in this folder"
        ),
        answer=re.compile(r"Yes, continue|Trust and continue|Yes, allow Codex|Yes\b"),
        message="Codex asks whether it may trust the working directory; answer in its terminal",
    ),
    Known(
        re.compile(r"Sign in with ChatGPT\b.{0,400}(?:API key|Device Code)"),
        message="Codex is not logged in; run `codex login` and start again, or log in in its terminal",
    ),
    Known(
        re.compile(r"\bUse existing model\b"),
        answer=re.compile(r"Use existing model"),
        message="Codex asks which model to use; choose one in its terminal",
    ),
    Known(
        re.compile(r"\bhooks? (?:need|needs|require|requires)\b.{0,40}\breview\b", re.IGNORECASE),
        message="Codex asks whether it may trust new hooks; answer in its terminal",
    ),
)

OTHER: Final = "Codex asks something that only you can answer; look at its terminal"
