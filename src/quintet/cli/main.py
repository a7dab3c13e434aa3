"""The program `quintet`: its commands in sections, and a user's mistake as one line."""

import errno
import sys
from pathlib import Path

import click

from quintet import __version__
from quintet.cli.commands import SECTIONS
from quintet.errors import QuintetError
from quintet.prose import for_stream

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EPILOG = "quintet COMMAND --help says more about a command."


class GroupInSections(click.Group):
    """A group whose help shows its commands in sections."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the hook's signature
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for name, commands in SECTIONS.items():
            with formatter.section(name):
                formatter.write_dl([(f"{command.name:<10}", command.get_short_help_str(90)) for command in commands])


@click.group(
    cls=GroupInSections,
    commands=[command for commands in SECTIONS.values() for command in commands],
    context_settings=CONTEXT,
    epilog=EPILOG,
)
@click.version_option(__version__, prog_name="quintet", message="%(prog)s %(version)s")
def cli() -> None:
    """Five coding agents take a task from specification to a passed test, unattended, in real terminals.

    In your project: quintet init, then quintet new "what you want", fill in the blanks of the file that it writes,
    and quintet run FILE. To see it work first: quintet demo.
    """


def _print_error(line: str) -> None:
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
        _print_error(f"quintet: {error.format_message()}{more}")
        code = 1
    except QuintetError as error:
        _print_error(f"quintet: {error}")
        code = 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOENT:
            raise  # not about a file: a bug
        _print_error(f"quintet: {error.filename or 'the current directory'}: {error.strerror}")
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
