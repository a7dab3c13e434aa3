"""`quintet clean`: shown first, asked for, then removed."""

import sys

import click

from quintet.errors import QuintetError, RunError
from quintet.setup.leftovers import Leftover


def clean(found: list[Leftover], *, dry_run: bool, yes: bool) -> None:
    """Remove what was found, unless nobody agrees."""
    if not found:
        click.echo("Nothing is left of old runs.")
        return
    for one in found:
        click.echo(f"  {one.what}: {one.where}")
    if dry_run:
        click.echo(f"\n{_things(len(found))} would be removed.")
        return
    if not yes and not sys.stdin.isatty():
        raise RunError("nothing was removed, because there is nobody to ask; --yes removes without asking")
    if not yes and not click.confirm(f"\nRemove {_things(len(found))}?"):
        click.echo("Nothing was removed.")
        return
    removed, problems = 0, []
    for one in found:
        try:
            one.remove()
            removed += 1
        except (OSError, QuintetError) as error:
            problems.append(str(error))
    click.echo(f"\n{_things(removed)} removed.")
    if problems:
        raise RunError("; ".join(problems))


def _things(number: int) -> str:
    return f"{number} thing{'' if number == 1 else 's'}"
