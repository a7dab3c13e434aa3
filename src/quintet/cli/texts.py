"""`quintet profiles` and `quintet prompts`: the texts that Quintet ships, to read and to replace."""

from pathlib import Path

import click

from quintet.loop.decide.prompts.own import NEEDED, export_texts, faults_of, known_slots, shipped_text
from quintet.loop.decide.prompts.texts import shipped_texts
from quintet.server.profiles import export_profiles, load_profile, shipped_names


def list_profiles() -> None:
    """Print each profile's name and description."""
    for name in shipped_names():
        click.echo(f"{name:<20} {load_profile(name).description}")


def show_profile(name: str) -> None:
    """Print a profile."""
    click.echo(load_profile(name).text, nl=False)


def export_all_profiles(folder: Path) -> None:
    """Write the profiles into a folder."""
    for path in export_profiles(folder):
        click.echo(path)


def list_prompts() -> None:
    """Print each text's name and slots."""
    for name in shipped_texts():
        slots = (f"{slot}{'*' if slot in NEEDED[name] else ''}" for slot in sorted(known_slots(name)))
        click.echo(f"{name:<20} {' '.join(slots)}")


def show_prompt(name: str) -> None:
    """Print a text of the prompts."""
    click.echo(shipped_text(name), nl=False)


def export_prompts(folder: Path, names: tuple[str, ...]) -> None:
    """Write texts of the prompts into a folder."""
    for path in export_texts(folder, names):
        click.echo(path)


def check_prompts(folder: Path) -> int:
    """Print what is wrong with the texts in a folder; the exit code is 1 where something is."""
    faults = list(faults_of(str(folder)))
    for fault in faults:
        click.echo(fault)
    if not faults:
        click.echo(f"{folder}: nothing is wrong")
    return 1 if faults else 0
