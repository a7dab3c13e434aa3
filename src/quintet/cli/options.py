"""The settings table as command-line options, and the files that a command is given."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from quintet.config import TABLE
from quintet.config.describe import describe_allowed, describe_default, sections
from quintet.config.kinds import Choice, Flag, Kind, PathText
from quintet.config.table import Row
from quintet.errors import ConfigError
from quintet.layout import TASK_SUFFIXES

Command = TypeVar("Command", bound=Callable[..., Any])
_NO_BREAK: Final = "\xa0"
_ABOUT_SETTINGS: Final = (
    "The settings follow. Each is an environment variable too (--max-rounds is MAX_ROUNDS) and a key of the config "
    "file; an option counts before a variable, and that before the file."
)


class SettingsCommand(click.Command):
    """A command whose help shows its own options first, then the settings in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        settings = {row.name for row in TABLE}
        own = (one for one in self.get_params(ctx) if isinstance(one, click.Option) and one.name not in settings)
        with formatter.section("Options"):
            formatter.write_dl([record for option in own if (record := option.get_help_record(ctx))])
        formatter.write_paragraph()
        formatter.write_text(_ABOUT_SETTINGS)
        for title, rows in sections():
            with formatter.section(title):
                formatter.write_dl([_record(row) for row in rows])
        formatter.buffer = [text.replace(_NO_BREAK, " ") for text in formatter.buffer]


def _record(row: Row) -> tuple[str, str]:
    """An option and its help."""
    spelling = f"--[no-]{row.flag.removeprefix('--')}" if isinstance(row.kind, Flag) else f"{row.flag} {row.kind.word}"
    allowed = describe_allowed(row)
    return spelling, f"{row.meaning}{f' ({allowed})' if allowed else ''} [default:{_NO_BREAK}{describe_default(row)}]"


def setting_options(command: Command) -> Command:
    """Add one option for each setting. Values stay text; the kinds of the table read them."""
    for row in reversed(TABLE):
        if isinstance(row.kind, Flag):
            spelling = f"{row.flag}/--no-{row.flag.removeprefix('--')}"
            option = click.option(spelling, row.name, default=None, help=row.meaning)
        else:
            option = click.option(
                row.flag,
                row.name,
                metavar=row.kind.word,
                help=row.meaning,
                shell_complete=_completion(row.kind),
            )
        command = option(command)
    return command


def _completion(kind: Kind) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The completion of a value: the allowed names, or files."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        if isinstance(kind, Choice):
            return [CompletionItem(name) for name in kind.names if name.startswith(begun)]
        return [CompletionItem(begun, type="file")] if isinstance(kind, PathText) else []

    return complete


def config_and_task(files: Sequence[Path]) -> tuple[Path | None, Path | None]:
    """The config file and the task file, given in any order."""
    configs = [path for path in files if _is_config(path)]
    tasks = [path for path in files if path not in configs]
    for kind, found in (("config file", configs), ("task file", tasks)):
        if found[1:]:
            raise ConfigError(f"more than one {kind}: {', '.join(map(str, found))}; name one")
    return next(iter(configs), None), next(iter(tasks), None)


def only_task(task_file: Path, by_flag: str | None) -> str:
    """The task file; an error if it is named a second time by an option."""
    if by_flag is not None:
        raise ConfigError(f"the task file is named twice: {task_file} and --prompt-file {by_flag}; name one")
    return str(task_file)


def task_on_command_line(flags: Mapping[str, Any]) -> str:
    """The task as it is named on the command line; empty if it is not."""
    if flags.get("prompt_file"):
        return shlex.quote(str(Path(flags["prompt_file"]).absolute()))
    return "--prompt TEXT" if flags.get("prompt") else ""


def _is_config(path: Path) -> bool:
    """Whether a file is a config: by its suffix, else by a brace or bracket at its beginning."""
    suffix = path.suffix.lower()
    if suffix in (".json", *TASK_SUFFIXES):
        return suffix == ".json"
    try:
        if not path.is_file():  # a pipe can be read only once
            return True
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(4096).lstrip()[:1] in ("{", "[")
    except OSError:
        return True
