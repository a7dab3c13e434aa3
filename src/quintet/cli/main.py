"""The command `quintet`."""

import errno
import sys
from pathlib import Path
from typing import Any

import click

from quintet import __version__
from quintet.cli.completion import completion_command
from quintet.cli.detect import detect_command
from quintet.cli.options import SettingsCommand, config_argument, files_argument, one_task, setting_options, tell_apart
from quintet.cli.report import report_command, runs_command
from quintet.cli.serve import attach_command, logs_command, ps_command, serve_command, stop_command
from quintet.cli.setup import clean_command, doctor_command, init_command, lint_command, new_command
from quintet.cli.status import status_command
from quintet.cli.texts import profiles_group, prompts_group
from quintet.cli.watch import dashboard_command, watch_command
from quintet.errors import QuintetError
from quintet.prose import for_stream

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EPILOG = "quintet COMMAND --help says more about a command."


class Sections(click.Group):
    """A group whose help shows its commands in sections."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._sections: dict[str, tuple[click.Command, ...]] = {}

    def add_section(self, name: str, commands: tuple[click.Command, ...]) -> None:
        self._sections[name] = commands
        for command in commands:
            self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the hook's signature
        return [command.name or "" for commands in self._sections.values() for command in commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for name, commands in self._sections.items():
            with formatter.section(name):
                formatter.write_dl([(f"{command.name:<10}", command.get_short_help_str(90)) for command in commands])


@click.group(cls=Sections, context_settings=CONTEXT, epilog=EPILOG)
@click.version_option(__version__, prog_name="quintet", message="%(prog)s %(version)s")
def cli() -> None:
    """Five coding agents take a task from specification to a passed test, unattended, in real terminals.

    In a project of yours: quintet init, then quintet new "what you want", fill in the blanks of the file that it
    writes, and quintet run FILE. To see it work first: quintet demo.
    """


@click.command("run", cls=SettingsCommand)
@files_argument
@click.option("--dry-run", is_flag=True, help="Print the plan and the first prompt, and start nothing.")
@click.option("--plain", is_flag=True, help="One line for each event instead of a live view.")
@click.option("--json", "as_json", is_flag=True, help="Print the journal, one JSON object a line.")
@setting_options
def run_command(files: tuple[Path, ...], dry_run: bool, plain: bool, as_json: bool, **flags: Any) -> None:
    """Carry a task from specification to a passed test, or go on with an unfinished run.

    TASK.md is the task file (`quintet new` begins one). CONFIG.json holds settings; without it, that is quintet.json
    in the project, where there is one.
    """
    config_file, task_file = tell_apart(files)
    if task_file is not None:
        flags["prompt_file"] = one_task(task_file, flags["prompt_file"])
    if dry_run:
        from quintet.cli.plan import show_plan  # noqa: PLC0415 - each command loads only what it needs

        show_plan(config_file, flags, as_json)
        return
    from quintet.cli.run import run  # noqa: PLC0415

    sys.exit(run(config_file, flags, plain=plain, as_json=as_json))


@click.command("demo")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--keep", is_flag=True, help="Leave the five terminals running, to look into them.")
def demo_command(folder: Path | None, keep: bool) -> None:
    """Watch the whole loop work in under a minute, with scripted agents, without any account."""
    from quintet.cli.demo import demo  # noqa: PLC0415

    sys.exit(demo(folder, keep=keep))


@click.command("config", cls=SettingsCommand)
@config_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@setting_options
def config_command(config_file: Path | None, as_json: bool, **flags: Any) -> None:
    """Print every effective setting and the place it came from."""
    from quintet.cli.show import show_settings  # noqa: PLC0415

    show_settings(config_file, flags, as_json)


SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "First steps": (init_command, new_command, lint_command, doctor_command, demo_command),
    "A run": (
        run_command,
        status_command,
        watch_command,
        dashboard_command,
        attach_command,
        logs_command,
        stop_command,
    ),
    "Afterwards": (report_command, runs_command, clean_command),
    "Settings and texts": (config_command, prompts_group, profiles_group, completion_command),
    "Terminals": (ps_command, serve_command, detect_command),
}
for name, commands in SECTIONS.items():
    cli.add_section(name, commands)


def _say(line: str) -> None:
    click.echo(for_stream(line, sys.stderr), err=True)


def main() -> None:
    """Run the command line; a user's mistake is one line and exit code 1."""
    try:
        Path.cwd()  # nothing works without one; Python 3.13.0 even fails to load modules
        code = cli.main(standalone_mode=False)
    except click.Abort:
        code = 130
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 0
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        more = f" ({context.command_path} --help says more)" if context else ""
        _say(f"quintet: {error.format_message()}{more}")
        code = 1
    except QuintetError as error:
        _say(f"quintet: {error}")
        code = 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOENT:
            raise  # not about a file: a bug
        click.echo(f"quintet: {error.filename or 'the current directory'}: {error.strerror}", err=True)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
