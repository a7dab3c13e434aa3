"""Takes the place where a recording was made out of its frames, without moving a single character."""

import re

BETWEEN = r"(?:[\s│]*\n[\s│]*)?"
"""Where a path is broken at the edge of the pane."""


def hide(text: str, home: str) -> str:
    public = f"/home/dev/{'x' * len(home)}"[: len(home)]
    pattern = BETWEEN.join(re.escape(letter) for letter in home)

    def replaced(found: re.Match[str]) -> str:
        letters = iter(public)
        return "".join(letter if letter.isspace() or letter == "│" else next(letters) for letter in found[0])

    return re.sub(pattern, replaced, text)
