"""The prompts' texts: Markdown files with named slots.

`{{name}}` is replaced by a value. `{{?name}}...{{/name}}` stays only where the value is not empty,
`{{!name}}...{{/name}}` only where it is. Anything else in double braces is an error.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from quintet.errors import PromptError

_BLOCK = re.compile(r"\{\{([?!])(\w+)\}\}\n?(.*?)\{\{/\2\}\}\n?", re.DOTALL)
_SLOT = re.compile(r"\{\{(.*?)\}\}")


@cache
def text_of(name: str) -> str:
    """A shipped text."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8")


def render(name: str, values: Mapping[str, str]) -> str:
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

    return _SLOT.sub(lambda match: value(match[1]), _BLOCK.sub(block, text_of(name))).strip("\n") + "\n"
