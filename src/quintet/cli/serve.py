"""The commands around the terminals: serve, ps, attach, logs, stop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quintet.cli.completion import complete_role, complete_run, complete_session
from quintet.cli.status import wd_option
from quintet.errors import RunError

if TYPE_CHECKING:
    from quintet.server.http.serve import Served
    from quintet.server.terminal.roster import Seat

OPEN_TO_ALL = "no token: every user of this machine can start programs as you through this server"

session_option = click.option(
    "--session",
    metavar="NAME",
    help="The session; by default the newest of this directory.",
    shell_complete=complete_session,
)


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Any other than loopback needs QUINTET_TOKEN.")
@click.option("--port", default=9889, show_default=True, type=click.IntRange(0, 65535))
@click.option("--no-token", is_flag=True, help="Let everybody in, for clients that know no token.")
def serve_command(host: str, port: int, no_token: bool) -> None:
    """Serve the terminals of all runs over HTTP."""
    from quintet.server.http.serve import serve  # noqa: PLC0415 - each command loads only what it needs
    from quintet.watch.dashboard.routes import Pages  # noqa: PLC0415

    serve(host, port, _tell_served, Pages, no_token=no_token)


def _tell_served(served: Served) -> None:
    """The token is shown in a terminal alone: what is printed elsewhere ends in a log."""
    click.echo(f"Terminal server at {served.url}")
    if not served.token:
        click.echo(f"warning: {OPEN_TO_ALL}", err=True)
    elif sys.stdout.isatty():
        click.echo(f"The dashboard is at {served.url}/#token={served.token}")
        click.echo("The address has its secret in it: keep it to yourself. Ctrl-C ends it.")
    elif served.token_file is not None:
        click.echo(f"Your own commands find its token in {served.token_file}")


@click.command("ps")
def ps_command() -> None:
    """List the terminals that are there."""
    from quintet.server.terminal.roster import roster  # noqa: PLC0415

    seats = roster()
    if not seats:
        click.echo("No terminals.")
    for seat in seats:
        click.echo(
            f"{seat.session:<24} {seat.role:<16} {seat.terminal_id}  {seat.provider:<12} {seat.status:<20} {seat.cwd}"
        )


@click.command("attach")
@click.argument("role", required=False, shell_complete=complete_role)
@session_option
@click.option("--read-only", is_flag=True, help="Only look: what you type goes nowhere.")
def attach_command(role: str | None, session: str | None, read_only: bool) -> None:
    """Show a terminal; Ctrl-b d leaves it.

    ROLE is analyst, peer_analyst, programmer, peer_programmer or tester; without it the first is shown.
    """
    from quintet.server.terminal.roster import attach  # noqa: PLC0415

    attach(_seats(role, session)[0], read_only=read_only)


@click.command("logs")
@click.argument("role", shell_complete=complete_role)
@session_option
def logs_command(role: str, session: str | None) -> None:
    """Print what a terminal has shown so far.

    ROLE is analyst, peer_analyst, programmer, peer_programmer or tester.
    """
    from quintet.server.terminal.roster import read_output  # noqa: PLC0415

    click.echo(read_output(_seats(role, session)[0]))


@click.command("stop")
@click.argument("run", required=False, shell_complete=complete_run)
@wd_option
@click.option("--session", metavar="NAME", help="Only this session, of any project.", shell_complete=complete_session)
@click.option("--all", "everything", is_flag=True, help="All runs and all terminals, of all projects.")
@click.option("--keep-terminals", is_flag=True, help="End only the run's process.")
def stop_command(run: str | None, wd: Path, session: str | None, everything: bool, keep_terminals: bool) -> None:
    """End the run of this project and its terminals; quintet run goes on with it later.

    RUN is one run of the project; without it, all of the project is ended. Of a run that is over only the terminals
    are left to end.
    """
    from quintet.setup import stopping  # noqa: PLC0415

    if sum(bool(one) for one in (run, session, everything)) > 1:
        raise RunError("RUN, --session and --all exclude each other; name one")
    if everything:
        stopping.end_all(click.echo, keep_terminals=keep_terminals)
        return
    found = stopping.of_session(session) if session else stopping.of_run(wd, run) if run else stopping.in_project(wd)
    stopping.end(found, click.echo, keep_terminals=keep_terminals)


def _seats(role: str | None, session: str | None) -> list[Seat]:
    from quintet.server.terminal.roster import choose, roster  # noqa: PLC0415

    return choose(roster(), role, session)
