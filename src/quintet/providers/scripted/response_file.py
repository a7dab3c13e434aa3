"""The response file that a prompt asks for, and the ways an agent can get it wrong."""

import re
import shlex
import time
from pathlib import Path
from typing import Final

HUGE_LINES: Final = 100_000
NOT_UTF8: Final = b"caf\xe9 \xff\xfe\n"
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


def write_response(path: Path, text: str, manner: str, seconds: float) -> bytes | None:
    """Write a response in one of the scenario's manners; what the file holds then, where it is a complete one."""
    if manner == "say_only":
        return None
    if manner == "late":
        time.sleep(seconds)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = f"{text}\n".encode()
    match manner:
        case "empty":
            path.write_bytes(b"")
            return None
        case "directory":
            path.mkdir()
            (path / path.name).write_bytes(data)
            return None
        case "symlink":
            elsewhere = path.with_suffix(".elsewhere")
            elsewhere.write_bytes(data)
            path.symlink_to(elsewhere)
            return None
        case "pieces":
            half = len(data) // 2
            path.write_bytes(data[:half])
            time.sleep(seconds)
            with path.open("ab") as file:
                file.write(data[half:])
            return data
        case "huge":
            data += b"one of the many lines of a log\n" * HUGE_LINES
        case "not_utf8":
            data += NOT_UTF8
    path.write_bytes(data)
    if manner == "twice":
        time.sleep(seconds)
        data += b"\n(Once more.)\n"
        path.write_bytes(data)
    return data
