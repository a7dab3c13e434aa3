"""Agent profiles: Markdown with a front matter of `key: value` lines, as CAO reads them too."""

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from quintet import files
from quintet.errors import ProfileError
from quintet.roles import ROLES

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Profile:
    """Who an agent is told to be."""

    name: str
    description: str
    instructions: str
    text: str
    """the whole file"""


def shipped_names() -> tuple[str, ...]:
    """The profiles of the five roles, in role order."""
    return tuple(role.profile for role in ROLES)


def load_profile(name: str) -> Profile:
    """A shipped profile."""
    if name not in shipped_names():
        raise ProfileError(f'unknown profile "{name[:64]}"; shipped are {", ".join(shipped_names())}')
    return parse_profile((resources.files(__package__) / f"{name}.md").read_text(encoding="utf-8"), f"{name}.md")


def export_profiles(folder: Path) -> list[Path]:
    """Write the shipped profiles into a folder; a file that differs from ours is somebody's and stays."""
    targets = {folder / f"{name}.md": load_profile(name).text for name in shipped_names()}
    try:
        for path, text in targets.items():
            if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
                raise ProfileError(f"{path}: is there already and differs; move it away or choose another folder")
        for path, text in targets.items():
            files.write(path, text, private=False)
    except OSError as error:
        raise ProfileError(f"{error.filename or folder}: cannot be written ({error.strerror})") from None
    return list(targets)


def parse_profile(text: str, source: str) -> Profile:
    """Read a profile's front matter and instructions."""
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text.removeprefix("\ufeff").replace("\r\n", "\n"), re.DOTALL)
    if not match:
        raise ProfileError(f"profile {source}: does not begin with a front matter between two lines of ---")
    pairs = (line.partition(":") for line in match[1].split("\n") if ":" in line and not line.startswith((" ", "#")))
    fields = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
    if not _NAME.fullmatch(fields.get("name", "")):
        raise ProfileError(f"profile {source}: name has to be 1 to 64 letters, digits, _ or -")
    return Profile(fields["name"], fields.get("description", ""), match[2].strip(), text)
