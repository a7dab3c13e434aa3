"""The outputs of the roles in a state: whether there is one, how long it is, and the note in place of a missing one."""

from collections.abc import Iterable
from typing import Final

from quintet.loop.decide.markup import normalise
from quintet.roles import Role

NOT_THERE: Final = "(Not available: "
"""how every note begins that stands in for an output which does not exist"""


def missing(output: str) -> bool:
    """Whether an output is only a note that there is none."""
    return is_empty(output) or output.startswith(NOT_THERE)


def is_empty(text: str) -> bool:
    """Whether nobody could read anything in a text."""
    return not normalise(text).strip()


def blank(roles: Iterable[Role]) -> dict[str, str]:
    return {role.output: "" for role in roles}


def size_of(text: str) -> int:
    """The bytes of a text, as a file has them."""
    return len(text.encode("utf-8", "replace"))
