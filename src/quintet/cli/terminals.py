"""The commands around the terminals: ps, attach, logs, stop."""

from pathlib import Path

import click

from quintet.errors import RunError
from quintet.server.terminal.direct_access import attach, choose_terminals, list_terminals, read_output
from quintet.setup import stopping


def ps() -> None:
    """Print one line for each terminal."""
    rows = list_terminals()
    if not rows:
        click.echo("No terminals.")
    for row in rows:
        click.echo(f"{row.session:<24} {row.role:<16} {row.terminal_id}  {row.provider:<12} {row.status:<20} {row.cwd}")


def attach_to(role: str | None, session: str | None, read_only: bool) -> None:
    """Show a terminal in this one."""
    attach(choose_terminals(list_terminals(), role, session)[0], read_only=read_only)


def logs(role: str, session: str | None) -> None:
    """Print the output of a terminal."""
    click.echo(read_output(choose_terminals(list_terminals(), role, session)[0]))


def stop(run: str | None, wd: Path, session: str | None, everything: bool, keep_terminals: bool) -> None:
    """Stop what is named: a run, a session, everything, or the project."""
    if sum(bool(one) for one in (run, session, everything)) > 1:
        raise RunError("RUN, --session and --all exclude each other; name one")
    if everything:
        stopping.stop_all(click.echo, keep_terminals=keep_terminals)
        return
    found = (
        stopping.target_of_session(session)
        if session
        else stopping.target_of_run(wd, run)
        if run
        else stopping.target_in_project(wd)
    )
    stopping.stop(found, click.echo, keep_terminals=keep_terminals)
