"""`quintet serve` and `quintet dashboard`: the commands that answer over HTTP until they are interrupted."""

import os
import sys
from pathlib import Path
from typing import Final

import click

from quintet.config import load_settings
from quintet.server.http.dashboard_server import serve_dashboard
from quintet.server.http.serve import Served, serve
from quintet.setup.callers import refuse_agents
from quintet.setup.dashboard_control import ControlRoutes
from quintet.watch.dashboard.routes import DashboardRoutes, QueueView

OPEN_TO_ALL: Final = "no token: every user of this machine can start programs as you through this server"
SECRET: Final = "The address contains a secret: keep it to yourself. Ctrl-C ends it."


def dashboard(wd: Path, port: int, control: bool) -> None:
    """Serve the dashboard of a project."""
    if control:
        refuse_agents(if_in_doubt=False)  # a service may start it, too
    pages = (ControlRoutes if control else DashboardRoutes)(lambda: [wd], open_queue=lambda: _queue_of(wd))
    acts = "\nWho opens it can approve, send back, pause and stop runs." if control else ""
    serve_dashboard(pages, port, lambda url: click.echo(f"The dashboard is at {url}{acts}\n{SECRET}"), can_act=control)


def _queue_of(wd: Path) -> QueueView:
    """The queue that the settings of a project name."""
    from quintet.fleet.queue_page import QueuePage  # noqa: PLC0415 - only for those who look at it

    return QueuePage(load_settings(None, os.environ, {"wd": str(wd)}, Path.cwd()).settings)


def serve_all(host: str, port: int, no_token: bool) -> None:
    """Serve the terminals of all runs."""
    serve(host, port, _print_address, DashboardRoutes, no_token=no_token)


def _print_address(served: Served) -> None:
    """Print where the server is. The token is printed only on a terminal: what goes elsewhere ends in a log."""
    click.echo(f"Terminal server at {served.url}")
    if not served.token:
        click.echo(f"warning: {OPEN_TO_ALL}", err=True)
    elif sys.stdout.isatty():
        click.echo(f"The dashboard is at {served.url}/#token={served.token}\n{SECRET}")
    elif served.token_file is not None:
        click.echo(f"Your own commands find its token in {served.token_file}")
