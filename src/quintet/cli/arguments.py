"""Arguments and options that several commands have."""

from pathlib import Path

import click

from quintet.cli.lazy import completes_with

FILE = click.Path(path_type=Path)
PORT = click.IntRange(0, 65535)

config_argument = click.argument("config_file", required=False, type=FILE, metavar="[CONFIG.json]")
role_completion = completes_with("completion:complete_role")
run_argument = click.argument("run", required=False, shell_complete=completes_with("completion:complete_run"))
session_completion = completes_with("completion:complete_session")
session_option = click.option(
    "--session",
    metavar="NAME",
    help="The session; by default the newest of this directory.",
    shell_complete=session_completion,
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
plain_option = click.option("--plain", is_flag=True, help="Print one line for each event instead of a live view.")
wd_option = click.option(
    "--wd",
    envvar="WD",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True),
    help="The project; by default the current directory.  [WD]",
)
