"""What Claude Code asks before it takes prompts."""

import re
from typing import Final

from quintet.providers.choices import Known

TRUST: Final = Known(
    re.compile(r"one you trust\?|Do you trust the files in this folder\?|trust the (?:files|contents)"),
    answer=re.compile(r"Yes, (?:I trust|proceed|continue)"),
    message="Claude Code asks whether it may trust the working directory; answer in its terminal",
)
BYPASS: Final = Known(
    re.compile(r"Bypass Permissions mode\b.{0,1500}\bYes, I accept"),
    answer=re.compile(r"Yes, I accept"),
    message="Claude Code asks whether it may work without permission prompts; answer in its terminal",
)
KEY: Final = Known(
    re.compile(r"Detected a custom API key\b.{0,600}\bDo you want to use this API key\?"),
    answer=re.compile(r"Yes\b"),
    message="Claude Code asks whether to use the API key in its environment; answer in its terminal",
)
"""the user has put the key into the environment that the run was started with"""
KNOWN: Final = (
    TRUST,
    BYPASS,
    KEY,
    Known(
        re.compile(r"Select login method|Browser didn't open\?|Paste code here if prompted|Please run /login"),
        message="Claude Code is not logged in; run `claude`, log in and start again, or log in in its terminal",
    ),
    Known(
        re.compile(r"Choose the text style that looks best|Let's get started\."),
        message="Claude Code was never used here; run `claude` once to set it up, then start again",
    ),
    Known(re.compile(r"Press Enter to continue…?$"), keys=("Enter",)),
)

OTHER: Final = "Claude Code asks something that only you can answer; look at its terminal"
