"""The commands around the terminals: ps, attach, logs, stop."""

from pathlib import Path

import click

from quintet.errors import RunError
from quintet.server.terminal.direct_access import TerminalRow, attach, choose_terminals, list_terminals, read_output
from quintet.setup import stopping
from quintet.setup.callers import refuse_agents
from quintet.workspace.worktrees import trees_of


def ps() -> None:
    """Print one line for each terminal."""
    rows = list_terminals()
    if not rows:
        click.echo("No terminals.")
    for row in rows:
        click.echo(f"{row.session:<24} {row.role:<16} {row.terminal_id}  {row.provider:<12} {row.status:<20} {row.cwd}")


def attach_to(role: str | None, session: str | None, read_only: bool) -> None:
    """Show a terminal in this one."""
    attach(_choose(role, session), read_only=read_only)


def logs(role: str, session: str | None) -> None:
    """Print the output of a terminal."""
    click.echo(read_output(_choose(role, session)))


def _choose(role: str | None, session: str | None) -> TerminalRow:
    """The terminal that is meant; without a session, one of the newest session of the project that we are in."""
    return choose_terminals(list_terminals(), role, session, trees_of(Path.cwd().resolve()))[0]


def stop(run: str | None, wd: Path, session: str | None, everything: bool, keep_terminals: bool) -> None:
    """Stop what is named: a run, a session, everything, or the project."""
    refuse_agents(if_in_doubt=False)  # what cleans up may have lost its terminal
    if sum(bool(one) for one in (run, session, everything)) > 1:
        raise RunError("RUN, --session and --all exclude each other; name one")
    if everything:
        stopping.stop_all(click.echo, keep_terminals=keep_terminals)
        return
    found = (
        [stopping.target_of_session(session)]
        if session
        else [stopping.target_of_run(wd, run)]
        if run
        else stopping.targets_in_project(wd)
    )
    for target in found:
        stopping.stop(target, click.echo, keep_terminals=keep_terminals)
