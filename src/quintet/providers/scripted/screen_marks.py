"""What the scripted agent draws: shared by the program that draws it and the provider that reads it.

Only the program's own signs stand in the first column; all that it says is indented.
"""

from typing import Final

PROMPT: Final = "» "
WORKING: Final = "* Working"
ANSWER: Final = "= Answer"
PERMISSION: Final = "? Allow"
QUESTION: Final = "? Choose"
DIALOG: Final = "! Start-up:"
INDENT: Final = "  "
