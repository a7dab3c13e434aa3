"""The command `quintet`."""

import sys
from pathlib import Path
from typing import Any

import click

from quintet import __version__
from quintet.cli.detect import detect_command
from quintet.cli.options import config_argument, files_argument, one_task, setting_options, tell_apart
from quintet.cli.report import report_command, runs_command
from quintet.cli.serve import attach_command, logs_command, ps_command, serve_command, stop_command
from quintet.cli.status import status_command
from quintet.cli.watch import dashboard_command, watch_command
from quintet.errors import QuintetError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="quintet")
def cli() -> None:
    """Five coding agents take a task from specification to a passed test."""


@cli.command("run")
@files_argument
@click.option("--dry-run", is_flag=True, help="Print the plan and the first prompt, and start nothing.")
@click.option("--plain", is_flag=True, help="One line for each event instead of a live view.")
@click.option("--json", "as_json", is_flag=True, help="Print the journal, one JSON object a line.")
@setting_options
def run_command(files: tuple[Path, ...], dry_run: bool, plain: bool, as_json: bool, **flags: Any) -> None:
    """Carry a task from specification to a passed test, or go on with an unfinished run.

    TASK.md is the task file (`quintet new` begins one). CONFIG.json holds settings; without it, that is quintet.json
    in the project, where there is one. Every setting is an option and a variable too.
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


@cli.command("demo")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def demo_command(folder: Path | None) -> None:
    """Watch the whole loop work in under a minute, with scripted agents, without any account."""
    from quintet.cli.demo import demo  # noqa: PLC0415

    sys.exit(demo(folder))


@cli.command("config")
@config_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@setting_options
def config_command(config_file: Path | None, as_json: bool, **flags: Any) -> None:
    """Print every effective setting and the place it came from."""
    from quintet.cli.show import show_settings  # noqa: PLC0415

    show_settings(config_file, flags, as_json)


@cli.group("profiles")
def profiles_group() -> None:
    """The five agent profiles that Quintet ships."""


@profiles_group.command("list")
def profiles_list() -> None:
    """List the profiles, one a line."""
    from quintet.server.profiles import load_profile, shipped_names  # noqa: PLC0415

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


for command in (
    status_command,
    watch_command,
    dashboard_command,
    report_command,
    runs_command,
    serve_command,
    ps_command,
    attach_command,
    logs_command,
    stop_command,
    detect_command,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; a user's mistake is one line and exit code 1."""
    try:
        code = cli.main(standalone_mode=False)
    except click.Abort:
        code = 130
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 0
    except click.ClickException as error:
        click.echo(f"quintet: {error.format_message()}", err=True)
        code = 1
    except QuintetError as error:
        click.echo(f"quintet: {error}", err=True)
        code = 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
