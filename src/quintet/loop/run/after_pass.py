"""What follows a PASS: archive the OpenSpec change, commit the work tree, hand it over.

Each step is carried out twice: first it says what it is about to do, and that is saved; then it does it, unless an
earlier process has. Nothing here changes the exit code of a run.
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from quintet import command, git
from quintet.config import Settings
from quintet.layout import TMP, checks_folder, checks_git_folder, private_git_folder
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import (
    ArchiveChange,
    Commit,
    FollowUp,
    FollowUpEnded,
    FollowUpResult,
    Marked,
    OpenPullRequest,
    Push,
)
from quintet.loop.decide.task import title_of
from quintet.loop.journal import Noted, Warned
from quintet.loop.run import hand_over
from quintet.loop.run.confined import ConfinedCommands
from quintet.loop.run.work_tree import SECONDS, head_commit, never_committed, run_git, skipped_hooks
from quintet.own_programs import trusted_environment
from quintet.sandbox.private_git import repositories_made_since

_CHANGES: Final = Path("openspec") / "changes"
_ARCHIVE: Final = "archive"
_NO_COMMIT: Final = "none"
"""the mark of the first commit of a repository"""
_COMMIT_HOOKS: Final = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")


def carry_out(step: FollowUp, settings: Settings, state: State) -> Marked | FollowUpEnded:
    """Carry out a step that follows a PASS."""
    return _CARRY_OUT[type(step)](step.mark, settings, state)


def archive_change(change: str, settings: Settings, state: State) -> Marked | FollowUpEnded:
    """Archive the one active OpenSpec change; none or several are left alone."""
    wd, folder = settings.workspace.tree, settings.workspace.tree / _CHANGES
    if not change:
        names = _active_changes(folder)
        if len(names) == 1:
            return Marked(names[0])
        found = f"several active changes ({', '.join(names)})" if names else "no active change"
        return _skipped(f"OpenSpec archive skipped: {found} in {folder}")
    done = Noted(text=f"OpenSpec change {change} archived")
    if not (folder / change).is_dir() and _is_archived(folder, change):
        return FollowUpEnded(FollowUpResult.DONE, (done,))
    outcome = (
        _run_openspec(change, settings, state)
        if settings.is_sandboxed
        else command.run(
            ["openspec", "archive", change, "--yes"], wd, SECONDS, {"OPENSPEC_TELEMETRY": "0", **trusted_environment()}
        )
    )
    if outcome.exit_code == command.NOT_FOUND:
        return _failed(
            "OpenSpec archive failed: the command openspec is not installed (npm install -g @fission-ai/openspec)"
        )
    if outcome.exit_code:
        return _failed(f"OpenSpec archive of {change} failed: {outcome.last_line}")
    if (folder / change).is_dir():
        still = f"openspec says that it has archived {change}, but {folder / change} is still there"
        return FollowUpEnded(FollowUpResult.DONE, (Warned(text=still), done))
    return FollowUpEnded(FollowUpResult.DONE, (done,))


def _run_openspec(change: str, settings: Settings, state: State) -> command.Outcome:
    """Archive in a sandbox: OpenSpec follows links that agents have made."""
    commands = ConfinedCommands(
        settings, settings.workspace.tree, checks_folder(state.run_id), checks_git_folder(state.run_id)
    )
    words = ("env", "OPENSPEC_TELEMETRY=0", "openspec", "archive", change, "--yes")
    return commands.run(words, SECONDS, contextlib.nullcontext)


def _active_changes(folder: Path) -> list[str]:
    try:
        return sorted(
            entry.name
            for entry in folder.iterdir()
            if entry.is_dir() and entry.name != _ARCHIVE and not entry.name.startswith(".")
        )
    except OSError:
        return []


def _is_archived(folder: Path, change: str) -> bool:
    """OpenSpec puts the date before the name."""
    try:
        return any(entry.name.endswith(change) for entry in (folder / _ARCHIVE).iterdir())
    except OSError:
        return False


def commit(parent: str, settings: Settings, state: State) -> Marked | FollowUpEnded:
    """Commit the whole work tree, but for what belongs to the run."""
    wd = settings.workspace.tree
    if not parent:
        return Marked(head_commit(wd) or _NO_COMMIT)
    message = settings.post_git_commit_comment.strip() or f"Quintet: {title_of(state.prompt)[:72] or 'task passed'}"
    if _is_committed(wd, parent, message):
        return _committed(wd)
    if not git.is_repository(wd):
        return _skipped(f"no commit: {wd} is not in a git repository")
    if name := git.unfinished_command(wd):
        why = f"the repository is in the middle of something ({name}); finish that and commit by hand"
        return _failed(f"no commit: {why}")
    if settings.is_sandboxed and (made := repositories_made_since(wd, private_git_folder(state.run_id))):
        return _failed(f"no commit: agents have made {made[0]}/.git; remove it, and commit by hand")
    outcome = run_git(wd, "add", "--all", "--", ":/")
    if outcome.exit_code:
        return _failed(f"no commit: git add failed: {outcome.last_line}")
    # taken out again, because `git add` fails where an excluded path is one that the project ignores
    private = never_committed(settings)
    run_git(wd, "reset", "--quiet", "--", *private)
    if run_git(wd, "diff", "--cached", "--quiet", "--", *private).exit_code:
        return _failed(f"no commit: {TMP}/ could not be kept out of it; commit by hand")
    if run_git(wd, "diff", "--cached", "--quiet").exit_code == 0:
        return FollowUpEnded(FollowUpResult.SKIPPED, (Noted(text="nothing to commit"),))
    outcome = run_git(wd, "commit", "--quiet", "--message", message, hooks=not settings.is_sandboxed)
    # a commit whose hooks were still at work when an earlier process was killed may have come first
    if outcome.exit_code and not _is_committed(wd, parent, message):
        reason = f"git commit failed: {outcome.last_line}; the changes are staged, commit them by hand"
        return _failed(f"no commit: {reason}")
    return _committed(wd, skipped_hooks(settings, *_COMMIT_HOOKS))


def _is_committed(wd: Path, parent: str, message: str) -> bool:
    """Whether HEAD is the commit that was about to be made; a hook may have added to its message."""
    told = git.answer(wd, "log", "-1", "--format=%P%n%B", "HEAD")
    if told is None:
        return False
    parents, _, text = told.partition("\n")
    return (parents or _NO_COMMIT) == parent and text.strip().startswith(message)


def _committed(wd: Path, more: str = "") -> FollowUpEnded:
    done = tuple(Noted(text=text) for text in (f"committed as {head_commit(wd)}", more) if text)
    if not run_git(wd, "symbolic-ref", "--quiet", "HEAD").exit_code:
        return FollowUpEnded(FollowUpResult.DONE, done)
    detached = "the commit is on no branch, because HEAD is detached; give it one with git branch NAME"
    return FollowUpEnded(FollowUpResult.DONE, (*done, Warned(text=detached)))


def _skipped(text: str) -> FollowUpEnded:
    return FollowUpEnded(FollowUpResult.SKIPPED, (Warned(text=text),))


def _failed(text: str) -> FollowUpEnded:
    return FollowUpEnded(FollowUpResult.FAILED, (Warned(text=text),))


_CARRY_OUT: Final[Mapping[type[FollowUp], Callable[[str, Settings, State], Marked | FollowUpEnded]]] = {
    ArchiveChange: archive_change,
    Commit: commit,
    Push: hand_over.push,
    OpenPullRequest: hand_over.open_pull_request,
}
