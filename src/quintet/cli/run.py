"""`quintet run`: settings in, a run, its exit code out."""

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from quintet.api.client import ApiClient
from quintet.config import load_settings
from quintet.errors import ConfigError
from quintet.loop.driver import Driver
from quintet.loop.journal import Event, RunStopped, Warned
from quintet.loop.state import State
from quintet.watch.lines import line_for


def run(config_file: Path | None, flags: dict[str, Any]) -> int:
    """Carry out a run and print one line for each of its events."""
    loaded = load_settings(config_file, os.environ, flags, Path.cwd())
    driver = Driver(loaded.settings, connect_for(loaded.settings.wd), [_print])
    for warning in loaded.warnings:
        driver.emit(Warned(text=warning))
    return driver.run()


def connect_for(wd: Path) -> Any:
    """A way to the terminal server of a run in a directory."""

    def connect(api: str, _state: State) -> ApiClient:
        if not api:
            raise ConfigError("API: found nothing, allowed: the address of a terminal server")
        return ApiClient(api, str(wd), token=os.environ.get("QUINTET_TOKEN", ""))

    return connect


def _print(event: Event) -> None:
    click.echo(f"{_local_time(event.at)} {line_for(event)}", err=isinstance(event, RunStopped))


def _local_time(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
    except ValueError:
        return "--:--:--"
