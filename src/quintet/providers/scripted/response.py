"""The response file that a prompt asks for, and the ways an agent can get it wrong."""

import re
import shlex
import time
from pathlib import Path

_BLOCK = re.compile(r"^cat > (.+) <<'[^'\n]+'$", re.MULTILINE)


def response_path(prompt: str) -> Path | None:
    """The file named in the last RESPONSE FILE INSTRUCTION of a prompt, as a shell would read it."""
    found = _BLOCK.findall(prompt)
    if not found:
        return None
    try:
        words = shlex.split(found[-1])
    except ValueError:
        return None
    return Path(words[0]) if len(words) == 1 else None


def write_response(path: Path, text: str, manner: str, seconds: float) -> None:
    """Write a response in one of the scenario's manners."""
    if manner == "say_only":
        return
    if manner == "late":
        time.sleep(seconds)
    path.parent.mkdir(parents=True, exist_ok=True)
    if manner == "empty":
        path.write_text("")
    elif manner == "pieces":
        half = len(text) // 2
        path.write_text(text[:half], encoding="utf-8")
        time.sleep(seconds)
        with path.open("a", encoding="utf-8") as file:
            file.write(text[half:] + "\n")
    else:
        path.write_text(text + "\n", encoding="utf-8")
    if manner == "twice":
        time.sleep(seconds)
        path.write_text(f"{text}\n\n(Once more.)\n", encoding="utf-8")
