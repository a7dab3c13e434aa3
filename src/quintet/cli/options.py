"""The settings table as command-line options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from quintet.config import TABLE
from quintet.config.kinds import Flag

Command = TypeVar("Command", bound=Callable[..., Any])

config_argument = click.argument(
    "config_file", required=False, type=click.Path(path_type=Path), metavar="[CONFIG.json]"
)


def setting_options(command: Command) -> Command:
    """One option for each row of the table. Values stay text: the table's own kinds read them."""
    for row in reversed(TABLE):
        if isinstance(row.kind, Flag):
            spelling = f"{row.flag}/--no-{row.flag.removeprefix('--')}"
            option = click.option(spelling, row.name, default=None, help=f"{row.meaning}  [{row.env}]")
        else:
            option = click.option(row.flag, row.name, metavar="VALUE", help=f"{row.meaning}  [{row.env}]")
        command = option(command)
    return command
