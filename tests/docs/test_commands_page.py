"""The page of commands has every command, argument and option, and none that is not there."""

import re
from collections.abc import Iterator
from functools import cache

import click
import pytest

from quintet.cli.main import cli
from quintet.cli.options import SettingsCommand
from quintet.config import TABLE
from tests.docs.pages import DOCS

SETTINGS = {row.name for row in TABLE}
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from commands(inner, f"{path} {name}")


ALL = dict(commands(cli, "quintet"))


@cache
def sections() -> dict[str, tuple[str, str]]:
    """By command the rest of its heading and the text below it."""
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        match = re.match(r"[a-z ]+[a-z]", heading)
        assert match, heading
        found[match[0]] = (heading[match.end() :].strip(), body.partition("\n## ")[0])
    return found


def options_of(command: click.Command) -> set[str]:
    """Its own; the settings have a page of theirs."""
    own = (
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        and not (isinstance(command, SettingsCommand) and parameter.name in SETTINGS)
    )
    return {name for option in own for name in (*option.opts, *option.secondary_opts)}


def arguments_of(command: click.Command) -> str:
    context = click.Context(command)
    arguments = (one for one in command.params if isinstance(one, click.Argument))
    return " ".join(piece for one in arguments for piece in one.get_usage_pieces(context))


def test_every_command_is_there_and_no_other() -> None:
    assert sections().keys() == ALL.keys()


@pytest.mark.parametrize("path", ALL)
def test_every_argument_is_in_the_heading(path: str) -> None:
    assert sections()[path][0] == arguments_of(ALL[path])


@pytest.mark.parametrize("path", ALL)
def test_every_option_is_there_and_no_other(path: str) -> None:
    cells = re.findall(r"^\| (`-.*?) \|", sections()[path][1], re.MULTILINE)
    assert set(OPTION.findall(" ".join(cells))) == options_of(ALL[path])


def test_every_setting_of_a_command_is_on_the_page_of_settings() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    flags = {
        parameter.opts[0]
        for command in ALL.values()
        if isinstance(command, SettingsCommand)
        for parameter in command.params
        if parameter.name in SETTINGS
    }
    assert flags
    assert not [flag for flag in flags if f"| `{flag}` |" not in page]
