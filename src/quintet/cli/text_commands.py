"""The commands that show settings and texts, as a user sees them."""

import click

from quintet.cli.arguments import FILE, config_argument
from quintet.cli.lazy import runs
from quintet.cli.options import SettingsCommand, setting_options

SHELLS = ("bash", "zsh", "fish")


@click.command("config", cls=SettingsCommand)
@config_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@setting_options
@runs("config:show_settings")
def config_command() -> None:
    """Print every setting in effect and where it came from."""


@click.group("prompts")
def prompts_group() -> None:
    """The texts of the prompts, and your own in their place (the setting prompts_dir)."""


@prompts_group.command("list")
@runs("texts:list_prompts")
def prompts_list() -> None:
    """List the texts with the slots that each may use; those with a star it must use."""


@prompts_group.command("show")
@click.argument("name")
@runs("texts:show_prompt")
def prompts_show() -> None:
    """Print a text."""


@prompts_group.command("export")
@click.argument("folder", type=FILE)
@click.argument("names", nargs=-1)
@runs("texts:export_prompts")
def prompts_export() -> None:
    """Write texts into a folder, by default all, to change them there; prompts_dir names the folder."""


@prompts_group.command("check")
@click.argument("folder", type=FILE)
@runs("texts:check_prompts")
def prompts_check() -> None:
    """Check the texts in a folder, as a run does before it starts."""


@click.group("profiles")
def profiles_group() -> None:
    """The five agent profiles that Quintet ships."""


@profiles_group.command("list")
@runs("texts:list_profiles")
def profiles_list() -> None:
    """List the profiles, one a line."""


@profiles_group.command("show")
@click.argument("name")
@runs("texts:show_profile")
def profiles_show() -> None:
    """Print a profile."""


@profiles_group.command("export")
@click.argument("folder", type=FILE)
@runs("texts:export_all_profiles")
def profiles_export() -> None:
    """Write the profiles into a folder, for instance for another terminal server."""


@click.command("completion")
@click.argument("shell", required=False, type=click.Choice(SHELLS))
@click.option("--install", is_flag=True, help="Write it where the shell looks for it, instead of printing it.")
@runs("completion:completion")
def completion_command() -> None:
    """Print the completion script of a shell, by default of yours, or install it."""
