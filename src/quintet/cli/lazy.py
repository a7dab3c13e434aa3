"""Functions that are named by an import string and loaded when they are called.

Help and completion need only the options of a command. Most commands load far more when they run.
"""

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def load(target: str) -> Callable[..., Any]:
    """The function `module:function` of this package."""
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"{__package__}.{module}"), name)
    return function


def runs(target: str) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Make the named function the body of a command, and what it returns the exit code; the help stays."""

    def decorate(declared: Callable[[], None]) -> Callable[..., None]:
        @functools.wraps(declared)
        def call(**given: Any) -> None:
            if code := load(target)(**given):
                sys.exit(code)

        call.__dict__["target"] = target
        return call

    return decorate


def completes_with(target: str) -> Callable[..., Any]:
    """A `shell_complete` that is the named function."""

    def complete(*given: Any) -> Any:
        return load(target)(*given)

    return complete
