"""`quintet run`: settings in, a run, its exit code out."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from quintet.api.client import ApiClient
from quintet.config import load_settings
from quintet.loop.driver import Driver
from quintet.loop.journal import Event, RunStopped, Warned
from quintet.loop.responses import TMP
from quintet.loop.state import State
from quintet.watch.lines import line_for


def run(config_file: Path | None, flags: dict[str, Any], env: Mapping[str, str] = os.environ) -> int:
    """Carry out a run and print one line for each of its events."""
    loaded = load_settings(config_file, env, flags, Path.cwd())
    with ExitStack() as servers:
        driver = Driver(loaded.settings, partial(_connect, loaded.settings.wd, servers), [_print])
        for warning in loaded.warnings:
            driver.emit(Warned(text=warning))
        return driver.run()


def _connect(wd: Path, servers: ExitStack, api: str, state: State) -> ApiClient:
    """A client of the server at the address; without one, of a server of the run's own."""
    if api:
        return ApiClient(api, str(wd), token=os.environ.get("QUINTET_TOKEN", ""))
    from quintet.server.embedded import EmbeddedServer  # noqa: PLC0415 - a run over another server needs none of it

    sessions = [state.session_name] if state.session_name else []
    server = servers.enter_context(EmbeddedServer(sessions, discovery=wd / TMP / "server.json"))
    return ApiClient(server.url, str(wd), token=server.token)


def _print(event: Event) -> None:
    click.echo(f"{_local_time(event.at)} {line_for(event)}", err=isinstance(event, RunStopped))


def _local_time(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
    except ValueError:
        return "--:--:--"
