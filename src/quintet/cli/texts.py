"""`quintet profiles` and `quintet prompts`: the texts that Quintet ships, to read and to take over."""

import sys
from pathlib import Path

import click


@click.group("profiles")
def profiles_group() -> None:
    """The five agent profiles that Quintet ships."""


@profiles_group.command("list")
def profiles_list() -> None:
    """List the profiles, one a line."""
    from quintet.server.profiles import load_profile, shipped_names  # noqa: PLC0415 - only what is needed is loaded

    for name in shipped_names():
        click.echo(f"{name:<20} {load_profile(name).description}")


@profiles_group.command("show")
@click.argument("name")
def profiles_show(name: str) -> None:
    """Print a profile."""
    from quintet.server.profiles import load_profile  # noqa: PLC0415

    click.echo(load_profile(name).text, nl=False)


@profiles_group.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
def profiles_export(folder: Path) -> None:
    """Write the profiles into a folder, for instance for another terminal server."""
    from quintet.server.profiles import export_profiles  # noqa: PLC0415

    for path in export_profiles(folder):
        click.echo(path)


@click.group("prompts")
def prompts_group() -> None:
    """The texts of the prompts, and those of your own (the setting prompts_dir)."""


@prompts_group.command("list")
def prompts_list() -> None:
    """List the texts with the slots that each may use; those with a star it must use."""
    from quintet.loop.decide.prompts.own import NEEDED, known_slots  # noqa: PLC0415
    from quintet.loop.decide.prompts.texts import shipped_texts  # noqa: PLC0415

    for name in shipped_texts():
        slots = (f"{slot}{'*' if slot in NEEDED[name] else ''}" for slot in sorted(known_slots(name)))
        click.echo(f"{name:<20} {' '.join(slots)}")


@prompts_group.command("show")
@click.argument("name")
def prompts_show(name: str) -> None:
    """Print a text."""
    from quintet.loop.decide.prompts.own import shipped_text  # noqa: PLC0415

    click.echo(shipped_text(name), nl=False)


@prompts_group.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
def prompts_export(folder: Path, names: tuple[str, ...]) -> None:
    """Write texts into a folder, by default all, to change them there; prompts_dir names the folder."""
    from quintet.loop.decide.prompts.own import export_texts  # noqa: PLC0415

    for path in export_texts(folder, names):
        click.echo(path)


@prompts_group.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
def prompts_check(folder: Path) -> None:
    """Check the texts in a folder, as a run does before it starts."""
    from quintet.loop.decide.prompts.own import faults_of  # noqa: PLC0415

    faults = list(faults_of(str(folder)))
    for fault in faults:
        click.echo(fault)
    if faults:
        sys.exit(1)
    click.echo(f"{folder}: nothing is wrong")
