"""`quintet completion`, and what a shell offers for runs, roles and sessions."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from quintet import files
from quintet.errors import QuintetError, RunError
from quintet.program import program
from quintet.roles import ROLES
from quintet.server.state_folder import StateFolder
from quintet.watch.runs.folders import project_run_folders

VARIABLE: Final = "_QUINTET_COMPLETE"
INSTALL_PATHS: Final = {
    "bash": "~/.local/share/bash-completion/completions/quintet",
    "zsh": "~/.zfunc/_quintet",
    "fish": "~/.config/fish/completions/quintet.fish",
}
"""where each shell looks for the completions of a user"""
HINTS: Final = {
    "bash": "New shells complete it, where the package bash-completion is installed.",
    "zsh": "Put this line into ~/.zshrc:  fpath+=~/.zfunc; autoload -Uz compinit; compinit",
    "fish": "New shells complete it.",
}


def completion(shell: str | None, install: bool) -> None:
    """Print the completion script of a shell, or write it where the shell looks for it."""
    shell = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell) if shell in INSTALL_PATHS else None
    if kind is None:
        raise RunError(f"name your shell: {program()} completion {'|'.join(INSTALL_PATHS)}")
    # click's own `source` would start bash to look at its release
    script = kind(click.get_current_context().find_root().command, {}, "quintet", VARIABLE)
    text = script.source_template % script.source_vars()
    if not install:
        click.echo(text)
        return
    path = Path(INSTALL_PATHS[shell]).expanduser()
    try:
        files.write(path, text + "\n", private=False)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror})") from None
    click.echo(f"Written: {path}\n{HINTS[shell]}")


def complete_run(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The runs of the project."""
    wd = context.params.get("wd") or Path()
    return [CompletionItem(folder.name) for folder in project_run_folders(Path(wd)) if folder.name.startswith(begun)]


def complete_task(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The tasks of the queue; none where it cannot be read."""
    with suppress(QuintetError):
        from quintet.cli.queue import read_queue  # noqa: PLC0415 - it may not be installed

        queue, _ = read_queue()
        with queue:
            return [CompletionItem(name) for name in queue.ids() if name.startswith(begun)]
    return []


def complete_role(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The five roles."""
    return [CompletionItem(role.name) for role in ROLES if role.name.startswith(begun)]


def complete_session(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The sessions that have a socket; whether they live is not asked."""
    return [CompletionItem(name) for name in StateFolder().session_names() if name.startswith(begun)]
