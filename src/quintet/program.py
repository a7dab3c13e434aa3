"""What a user has to type to start this very program: advice has to work where it is read."""

import os
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Final

NAME: Final = "quintet"


def program() -> str:
    """The program's name where PATH leads to it, else its path or the module call that started it."""
    return words_for(sys.argv[0], os.environ.get("PATH"))


@cache
def words_for(started: str, path: str | None) -> str:
    """The words for a program that was started as this, as a shell reads them."""
    if Path(started) == Path(__file__).with_name("__main__.py"):
        return f"{_typed(sys.executable)} -m {NAME}"
    if Path(started).name != NAME:  # used from another program, which is none to advise
        return NAME
    found = shutil.which(NAME, path=path)
    if found and os.path.realpath(found) == os.path.realpath(started):
        return NAME
    return _typed(os.path.abspath(started))  # noqa: PTH100 - resolving links would name another file


def _typed(path: str) -> str:
    """A path as one types it: short in one's home, quoted where a shell would read it otherwise."""
    quoted, home = shlex.quote(path), os.path.expanduser("~").rstrip("/")  # noqa: PTH111 - never fails
    return f"~{path.removeprefix(home)}" if quoted == path and home and path.startswith(f"{home}/") else quoted
