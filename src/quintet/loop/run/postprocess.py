"""After a PASS: archive the OpenSpec change, commit the work tree. Nothing here changes a run's outcome."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from quintet import command, git
from quintet.config import Settings
from quintet.errors import GitError
from quintet.layout import TMP

Say = Callable[[str], None]
_TIMEOUT: Final = 300.0
_MOST_DIRTY: Final = 200
_UNDER_WAY: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")


def start_commit(wd: Path) -> str:
    """The commit that the project is at; nothing where it is no repository or has no commit."""
    outcome = _git(wd, "rev-parse", "--verify", "--quiet", "HEAD")
    return outcome.output.strip() if outcome.exit_code == 0 else ""


def uncommitted(settings: Settings, *options: str) -> list[str]:
    """The changes in the work tree, without `.tmp/`, as git's short status shows them."""
    others = (path.replace(":(", ":(exclude,", 1) for path in _never(settings))
    form = ("--porcelain", "--untracked-files=normal", "--no-renames", *options)
    outcome = _git(settings.wd, "status", *form, "--", ":/", *others)
    if outcome.exit_code or not outcome.output.strip():
        return []
    return outcome.output.strip("\0\n").split("\0" if "-z" in options else "\n")


def dirty_paths(settings: Settings) -> tuple[str, ...] | None:
    """What is not committed, relative to the project; a folder that is wholly new ends with a slash.

    None where that is not known: no repository, or too much to list.
    """
    wd = settings.wd
    prefix = _git(wd, "rev-parse", "--show-prefix")
    lines = uncommitted(settings, "-z")
    if prefix.exit_code or len(lines) > _MOST_DIRTY:
        return None
    here = prefix.output.removesuffix("\n") or "."
    return tuple(os.path.relpath(line[3:], here) + "/" * line.endswith("/") for line in lines if line[3:])


def post_process(settings: Settings, say: Say, warn: Say) -> None:
    """Do what the settings ask for; the commit is left out where the archive has failed."""
    archived = not settings.post_openspec_archive or _archive(settings.wd, say, warn)
    if settings.post_git_commit and archived:
        _commit(settings, say, warn)
    elif settings.post_git_commit:
        warn("no commit is made, because the OpenSpec change could not be archived")


def _archive(wd: Path, say: Say, warn: Say) -> bool:
    """Archive the one active change. False where that failed; skipping it is no failure."""
    folder = wd / "openspec" / "changes"
    try:
        names = sorted(
            entry.name
            for entry in folder.iterdir()
            if entry.is_dir() and entry.name != "archive" and not entry.name.startswith(".")
        )
    except OSError:
        names = []
    if len(names) != 1:
        found = f"several active changes ({', '.join(names)})" if names else "no active change"
        warn(f"OpenSpec archive skipped: {found} in {folder}")
        return True
    outcome = command.run(["openspec", "archive", names[0], "--yes"], wd, _TIMEOUT, {"OPENSPEC_TELEMETRY": "0"})
    if outcome.exit_code == command.NOT_FOUND:
        warn("OpenSpec archive failed: the command openspec is not installed (npm install -g @fission-ai/openspec)")
        return False
    if outcome.exit_code:
        warn(f"OpenSpec archive of {names[0]} failed: {outcome.last_line}")
        return False
    if (folder / names[0]).is_dir():
        warn(f"openspec says that it has archived {names[0]}, but {folder / names[0]} is still there")
    say(f"OpenSpec change {names[0]} archived")
    return True


def _commit(settings: Settings, say: Say, warn: Say) -> None:
    wd = settings.wd
    if not git.is_repository(wd):
        warn(f"no commit: {wd} is not in a git repository")
        return
    for name in _UNDER_WAY:
        if (wd / _git(wd, "rev-parse", "--git-path", name).output.strip()).exists():
            warn(f"no commit: the repository is in the middle of something ({name}); finish that and commit by hand")
            return
    outcome = _git(wd, "add", "--all", "--", ":/")
    if outcome.exit_code:
        warn(f"no commit: git add failed: {outcome.last_line}")
        return
    # taken out again, because `git add` fails where an excluded path is one that the project ignores
    _git(wd, "reset", "--quiet", "--", *_never(settings))
    if _git(wd, "diff", "--cached", "--quiet", "--", *_never(settings)).exit_code:
        warn(f"no commit: {TMP}/ could not be kept out of it; commit by hand")
        return
    if _git(wd, "diff", "--cached", "--quiet").exit_code == 0:
        say("nothing to commit")
        return
    message = settings.post_git_commit_comment.strip() or f"Quintet: {_title(settings)}"
    outcome = _git(wd, "commit", "--quiet", "--message", message)
    if outcome.exit_code:
        warn(f"no commit: git commit failed: {outcome.last_line}; the changes are staged, commit them by hand")
        return
    say(f"committed as {start_commit(wd)}")
    if _git(wd, "symbolic-ref", "--quiet", "HEAD").exit_code:
        warn("the commit is on no branch, because HEAD is detached; give it one with git branch NAME")


def _title(settings: Settings) -> str:
    lines = (line.strip(" #*-") for line in settings.prompt.splitlines() if not line.startswith("***"))
    return next((line for line in lines if line), "task passed")[:72]


def _never(settings: Settings) -> list[str]:
    """What belongs to a run and never into a commit."""
    prefix = _git(settings.wd, "rev-parse", "--show-prefix").output.removesuffix("\n")
    paths = [TMP.as_posix()]
    if settings.state_file.is_relative_to(settings.wd):
        paths.append(settings.state_file.relative_to(settings.wd).as_posix())
    return [f":(top,literal){prefix}{path}" for path in paths]


def _git(wd: Path, *arguments: str) -> command.Outcome:
    try:
        result = git.run(wd, *arguments, seconds=_TIMEOUT, hooks=True, check=False)
    except GitError as error:
        return command.Outcome(command.NOT_FOUND, str(error))
    return command.Outcome(result.code, result.out.decode("utf-8", "replace") or (result.error if result.code else ""))
