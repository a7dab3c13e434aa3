"""The first lines of the command: signals are heard before anything else is loaded."""

import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda heard, _frame: os._exit(128 + heard))
    sys.modules["httpx._main"] = None  # type: ignore[assignment]  # httpx's own command line: it loads much, for nothing
    from quintet.cli.main import main as command_line  # noqa: PLC0415 - loading it takes a while

    command_line()
