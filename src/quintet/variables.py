"""The names that an environment variable can have."""

import re
from typing import Final

VARIABLE_PATTERN: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE: Final = re.compile(VARIABLE_PATTERN)


def is_variable(name: str, value: str = "") -> bool:
    """Whether a shell and the kernel can take a variable of this name, with this value."""
    return bool(_VARIABLE.fullmatch(name)) and "\0" not in value
