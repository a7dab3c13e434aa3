"""The prompts' texts: Markdown files with named slots, shipped or the user's own.

`{{name}}` is replaced by a value. `{{?name}}...{{/name}}` stays only where the value is not empty,
`{{!name}}...{{/name}}` only where it is. Anything else in double braces is an error.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from quintet.errors import PromptError

_BLOCK = re.compile(r"\{\{([?!])(\w+)\}\}\n?(.*?)\{\{/\2\}\}\n?", re.DOTALL)
_SLOT = re.compile(r"\{\{(.*?)\}\}")


def shipped_texts() -> tuple[str, ...]:
    """The names of all texts, in alphabetical order."""
    found = (entry.name for entry in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in found if name.endswith(".md")))


@cache
def text_of(name: str, folder: str = "") -> str:
    """A text: the user's own where the folder has one, else the shipped one.

    It is read once, so that an agent which works on the folder does not change the prompts of its own run.
    """
    if folder:
        own = Path(folder) / f"{name}.md"
        try:
            return own.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            pass
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise PromptError(f"prompt text {own}: cannot be read ({reason})") from None
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8")


def slots_of(text: str) -> frozenset[str]:
    """All slots of a text; one that is no name (an opened block that is never closed, say) as it stands there."""
    found: set[str] = set()

    def block(match: re.Match[str]) -> str:
        found.add(match[2])
        return match[3]

    return frozenset(_SLOT.findall(_BLOCK.sub(block, text))) | found


def render(name: str, values: Mapping[str, str], folder: str = "") -> str:
    """A text with its slots filled. What a value contains is never taken for a slot."""

    def value(slot: str) -> str:
        if slot not in values:
            raise PromptError(
                f"prompt text {name}.md: unknown slot {{{{{slot}}}}}; known are {', '.join(sorted(values))}"
            )
        return values[slot].strip("\n")

    def block(match: re.Match[str]) -> str:
        wanted = bool(value(match[2])) == (match[1] == "?")
        return match[3] if wanted else ""

    return _SLOT.sub(lambda match: value(match[1]), _BLOCK.sub(block, text_of(name, folder))).strip("\n") + "\n"
