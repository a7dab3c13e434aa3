"""What git says of the project's work tree."""

import os
from pathlib import Path
from typing import Final

from quintet import command, git
from quintet.config import Settings
from quintet.errors import GitError
from quintet.layout import TMP

SECONDS: Final = 300.0
"""for a git command; hooks may take their time"""
_MOST_DIRTY: Final = 200


def head_commit(wd: Path) -> str:
    """The commit that the project is at; empty where it is no repository or has no commit."""
    outcome = run_git(wd, "rev-parse", "--verify", "--quiet", "HEAD")
    return outcome.output.strip() if outcome.exit_code == 0 else ""


def uncommitted(settings: Settings, *options: str) -> list[str]:
    """The changes in the work tree, without `.tmp/`, as git's short status shows them."""
    others = (path.replace(":(", ":(exclude,", 1) for path in never_committed(settings))
    form = ("--porcelain", "--untracked-files=normal", "--no-renames", *options)
    outcome = run_git(settings.workspace.tree, "status", *form, "--", ":/", *others)
    if outcome.exit_code or not outcome.output.strip():
        return []
    return outcome.output.strip("\0\n").split("\0" if "-z" in options else "\n")


def dirty_paths(settings: Settings) -> tuple[str, ...] | None:
    """What is not committed, relative to the project; a folder that is wholly new ends with a slash.

    None where that is not known: no repository, or too much to list.
    """
    prefix = run_git(settings.workspace.tree, "rev-parse", "--show-prefix")
    lines = uncommitted(settings, "-z")
    if prefix.exit_code or len(lines) > _MOST_DIRTY:
        return None
    here = prefix.output.removesuffix("\n") or "."
    return tuple(os.path.relpath(line[3:], here) + "/" * line.endswith("/") for line in lines if line[3:])


def never_committed(settings: Settings) -> list[str]:
    """What belongs to a run and never into a commit, as pathspecs."""
    prefix = run_git(settings.workspace.tree, "rev-parse", "--show-prefix").output.removesuffix("\n")
    paths = [TMP.as_posix(), *settings.workspace.included]
    if settings.state_file.is_relative_to(settings.workspace.tree):
        paths.append(settings.state_file.relative_to(settings.workspace.tree).as_posix())
    return [f":(top,literal){prefix}{path}" for path in paths]


def skipped_hooks(settings: Settings, *names: str) -> str:
    """What to tell where a sandboxed run leaves hooks of the repository out; empty where there are none.

    Agents can change them, or what they run: `core.hooksPath` may name a folder of the work tree.
    """
    if not settings.is_sandboxed:
        return ""
    tree = settings.workspace.tree
    try:
        folder = tree / git.run(tree, "rev-parse", "--git-path", "hooks", hooks=True).text
    except GitError:
        return ""
    found = [name for name in names if os.access(folder / name, os.X_OK)]
    why = "agents can change what they run"
    return f"hooks of the repository are skipped, because {why}: {', '.join(found)}" if found else ""


def run_git(wd: Path, *arguments: str, hooks: bool = False) -> command.Outcome:
    """Run git, with the repository's own hooks only if asked; a failure is an exit code with the reason as output."""
    try:
        result = git.run(wd, *arguments, seconds=SECONDS, hooks=hooks, check=False)
    except GitError as error:
        return command.Outcome(command.NOT_FOUND, str(error))
    return command.Outcome(result.code, result.out.decode("utf-8", "replace") or (result.error if result.code else ""))
