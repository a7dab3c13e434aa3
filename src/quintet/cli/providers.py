"""`quintet providers`: all agent CLIs that a run can have, as they are on this machine."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from quintet.config import load_settings
from quintet.prose import hanging
from quintet.providers.registry import REGISTERED
from quintet.setup.providers import ProviderFinding, list_providers


def providers(config_file: Path | None, as_json: bool) -> None:
    """Print each agent CLI: its release, its login, what it was tried with, and how it is driven."""
    found = list_providers(os.environ, load_settings(config_file, os.environ, {}, Path.cwd()).settings)
    if as_json:
        click.echo(json.dumps({"providers": [asdict(one) for one in found]}, ensure_ascii=False, indent=2))
        return
    width = max(len(one.name) for one in found)
    for one in found:
        first, *more = _lines(one)
        click.echo(hanging(f"{one.name:<{width}}  ", first))
        for line in more:
            click.echo(hanging(" " * (width + 2), line))


def _lines(one: ProviderFinding) -> Iterator[str]:
    if one.program:
        yield "; ".join(filter(None, (f"{one.version or 'installed'} at {one.program}", one.login)))
    elif one.own or REGISTERED[one.name].program:
        yield f"not installed{f': {one.install}' if one.install else ''}"
    else:
        yield "part of Quintet: follows a script"
    tried = "an agent of your own" if one.own else f"tried with {one.tried}" if one.tried else "not tried"
    if one.program or one.tried or one.own or REGISTERED[one.name].program:
        yield f"read from {one.driven}; {tried}"
