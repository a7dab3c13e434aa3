"""The commands around the terminals: serve, ps, attach, logs, stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quintet.cli.completion import complete_role, complete_session

if TYPE_CHECKING:
    from quintet.server.roster import Seat

session_option = click.option(
    "--session",
    metavar="NAME",
    help="The session; by default the newest of this directory.",
    shell_complete=complete_session,
)


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Any other than loopback needs QUINTET_TOKEN.")
@click.option("--port", default=9889, show_default=True, type=click.IntRange(0, 65535))
def serve_command(host: str, port: int) -> None:
    """Serve the terminals of all runs over HTTP."""
    from quintet.server.serve import serve  # noqa: PLC0415 - each command loads only what it needs
    from quintet.watch.pages import Pages  # noqa: PLC0415

    serve(host, port, lambda url: click.echo(f"Terminal server at {url}"), Pages)


@click.command("ps")
def ps_command() -> None:
    """List the terminals that are there."""
    from quintet.server.roster import roster  # noqa: PLC0415

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
def attach_command(role: str | None, session: str | None) -> None:
    """Show a terminal; Ctrl-b d leaves it.

    ROLE is analyst, peer_analyst, programmer, peer_programmer or tester; without it the first is shown.
    """
    from quintet.server.roster import attach  # noqa: PLC0415

    attach(_seats(role, session)[0])


@click.command("logs")
@click.argument("role", shell_complete=complete_role)
@session_option
def logs_command(role: str, session: str | None) -> None:
    """Print what a terminal has shown so far.

    ROLE is analyst, peer_analyst, programmer, peer_programmer or tester.
    """
    from quintet.server.roster import read_output  # noqa: PLC0415

    click.echo(read_output(_seats(role, session)[0]))


@click.command("stop")
@session_option
@click.option("--all", "everything", is_flag=True, help="End the sessions of all directories.")
def stop_command(session: str | None, everything: bool) -> None:
    """End the terminals of this directory's run."""
    from quintet.server.roster import choose_to_stop, roster, stop  # noqa: PLC0415

    seats = roster()
    names = sorted({seat.session for seat in seats}) if everything else [choose_to_stop(seats, session)]
    for name in names:
        stop(name)
        click.echo(f"Ended {name}.")


def _seats(role: str | None, session: str | None) -> list[Seat]:
    from quintet.server.roster import choose, roster  # noqa: PLC0415

    return choose(roster(), role, session)
