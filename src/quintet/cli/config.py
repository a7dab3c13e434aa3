"""`quintet config`: the settings in effect, for people and for programs."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from quintet.config import load_settings, settings_as_json

_WIDEST = 60


def show_settings(config_file: Path | None, as_json: bool, **flags: Any) -> None:
    """Print each setting's key, value and origin."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a setting may hold what the terminal cannot show
    loaded = load_settings(config_file, os.environ, flags, Path.cwd())
    values = settings_as_json(loaded.settings)
    if as_json:
        document = {key: {"value": value, "from": loaded.origin[key]} for key, value in values.items()}
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        rows = [(key, _short(value), loaded.origin[key]) for key, value in values.items()]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for key, value, origin in rows:
            click.echo(f"{key:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)


def _short(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
