"""The settings table as command-line options, and the files that a command is given."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from quintet.config import TABLE
from quintet.config.kinds import Choice, Flag, Kind, PathText
from quintet.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])
_TASK_NAMES: Final = (".md", ".markdown", ".txt")

config_argument = click.argument(
    "config_file", required=False, type=click.Path(path_type=Path), metavar="[CONFIG.json]"
)
files_argument = click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[CONFIG.json] [TASK.md]")


class SettingsCommand(click.Command):
    """A command whose help shows its own options first, then the settings by their sections in the config file."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(_section(parameter.name or ""), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


def _section(name: str) -> str:
    row = next((row for row in TABLE if row.name == name), None)
    if row is None:
        return "Options"
    section, _, inner = row.key.partition(".")
    return f"Settings, {section.replace('_', ' ')}" if inner else "Settings"


def setting_options(command: Command) -> Command:
    """One option for each row of the table. Values stay text: the table's own kinds read them."""
    for row in reversed(TABLE):
        if isinstance(row.kind, Flag):
            spelling = f"{row.flag}/--no-{row.flag.removeprefix('--')}"
            option = click.option(spelling, row.name, default=None, help=f"{row.meaning}  [{row.env}]")
        else:
            option = click.option(
                row.flag,
                row.name,
                metavar="VALUE",
                help=f"{row.meaning}  [{row.env}]",
                shell_complete=_completion(row.kind),
            )
        command = option(command)
    return command


def _completion(kind: Kind) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What a shell offers for a value: the names that are allowed, or files."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        if isinstance(kind, Choice):
            return [CompletionItem(name) for name in kind.names if name.startswith(begun)]
        return [CompletionItem(begun, type="file")] if isinstance(kind, PathText) else []

    return complete


def tell_apart(files: Sequence[Path]) -> tuple[Path | None, Path | None]:
    """The config file and the task file, in whichever order they come."""
    configs = [path for path in files if _is_config(path)]
    tasks = [path for path in files if path not in configs]
    for kind, found in (("config file", configs), ("task file", tasks)):
        if found[1:]:
            raise ConfigError(f"more than one {kind}: {', '.join(map(str, found))}; name one")
    return next(iter(configs), None), next(iter(tasks), None)


def one_task(task_file: Path, by_flag: str | None) -> str:
    """The task file, named once."""
    if by_flag is not None:
        raise ConfigError(f"the task file is named twice: {task_file} and --prompt-file {by_flag}; name one")
    return str(task_file)


def _is_config(path: Path) -> bool:
    """By its name; where that does not tell, a file that begins with a brace or bracket is a config."""
    suffix = path.suffix.lower()
    if suffix in (".json", *_TASK_NAMES):
        return suffix == ".json"
    try:
        if not path.is_file():  # a pipe can be read only once
            return True
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(4096).lstrip()[:1] in ("{", "[")
    except OSError:
        return True
