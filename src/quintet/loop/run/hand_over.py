"""Handing a PASS over: push its commit, open a pull request.

A push is never forced, and both can be done twice. What fails is a warning with the command to repeat.
"""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from quintet import command, git
from quintet.config import Settings
from quintet.loop.decide import pull_request
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import FollowUpEnded, FollowUpResult, Marked
from quintet.loop.journal import Noted, Warned
from quintet.loop.run.work_tree import SECONDS, head_commit, run_git, skipped_hooks
from quintet.own_programs import trusted_environment

_QUIET: Final = {"GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "NO_COLOR": "1", "GH_NO_UPDATE_NOTIFIER": "1"}
DRAFT: Final = "draft"
AGAIN: Final = "; to try again: "


class _Forge(NamedTuple):
    """The program that talks to a host of repositories."""

    program: str
    request: str
    """what it calls a pull request"""
    branch_option: str

    listing: tuple[str, ...]
    """the options with which it lists only open ones, as JSON"""

    def list_open(self, branch: str) -> list[str]:
        return [self.program, self.request, "list", self.branch_option, branch, *self.listing]

    def create(self, branch: str) -> list[str]:
        return [self.program, self.request, "create", self.branch_option, branch]


GITHUB: Final = _Forge("gh", "pr", "--head", ("--state", "open", "--json", "url"))
GITLAB: Final = _Forge("glab", "mr", "--source-branch", ("--output", "json"))


def push(commit: str, settings: Settings, _state: State) -> Marked | FollowUpEnded:
    """Push the commit to its branch on the remote."""
    wd = settings.workspace.tree
    if not commit:
        head = head_commit(wd)
        return Marked(head) if head else _failed("not pushed: there is no commit")
    remote, branch = _target(settings)
    if remote.startswith("-") or (branch and not _is_branch(wd, branch)):
        named = f"POST_PUSH is {settings.push_to!r}, which is no remote, and no remote and a branch"
        return _failed(f"not pushed: {named}")
    if not branch:
        return _failed("not pushed: HEAD is on no branch; name one in POST_PUSH, as in POST_PUSH='origin my-branch'")
    arguments = ("push", "--quiet", remote, f"{commit}:refs/heads/{branch}")
    outcome = run_git(wd, *arguments, hooks=not settings.is_sandboxed)
    if outcome.exit_code:
        again = shlex.join(["git", "-C", str(wd), *arguments])
        return _failed(f"not pushed: {outcome.last_line}{AGAIN}{again}")
    return _done(f"pushed as {branch} to {remote}", skipped_hooks(settings, "pre-push"))


def open_pull_request(branch: str, settings: Settings, state: State) -> Marked | FollowUpEnded:
    """Open a pull request for the pushed branch; one that is open already stays as it is."""
    wd = settings.workspace.tree
    remote, pushed = _target(settings)
    if not branch:
        return Marked(pushed)
    forge = GITLAB if "gitlab" in _host(wd, remote) else GITHUB
    if _is_open(_run(wd, forge.list_open(branch))):
        return _done(f"the pull request of {branch} is open already")
    text = pull_request.body(state, git.answer(wd, "diff", "--stat", state.start_commit or "HEAD~1", "HEAD") or "")
    arguments = [*forge.create(branch), "--title", pull_request.title(state)]
    # glab takes the text only on its command line
    arguments += ["--body-file", "-"] if forge is GITHUB else ["--description", text, "--yes"]
    outcome = _run(wd, [*arguments, "--draft"] if settings.post_pr == DRAFT else arguments, text)
    if outcome.exit_code:
        why = f"{forge.program} is not installed" if outcome.exit_code == command.NOT_FOUND else outcome.last_line
        again = f"cd {shlex.quote(str(wd))} && {shlex.join([*forge.create(branch), '--fill'])}"
        return _failed(f"no pull request: {why}{AGAIN}{again}")
    return _done(f"pull request opened: {outcome.last_line}")


def _is_branch(wd: Path, name: str) -> bool:
    return not name.startswith(("-", "+")) and run_git(wd, "check-ref-format", f"refs/heads/{name}").exit_code == 0


def _is_open(listed: command.Outcome) -> bool:
    """Whether a list of pull requests has one; what cannot be read has none, and the program refuses a second one."""
    try:
        return listed.exit_code == 0 and bool(json.loads(listed.output))
    except ValueError:
        return False


def _target(settings: Settings) -> tuple[str, str]:
    """The remote and the branch on it; no branch where HEAD is on none and none is named."""
    remote, _, named = settings.push_to.partition(" ")
    own = run_git(settings.workspace.tree, "symbolic-ref", "--quiet", "--short", "HEAD")
    return remote, named.strip() or ("" if own.exit_code else own.output.strip())


def _host(wd: Path, remote: str) -> str:
    url = git.answer(wd, "remote", "get-url", remote) or remote
    return urlsplit(url).hostname or url.partition(":")[0]


def _run(wd: Path, arguments: Sequence[str], given: str = "") -> command.Outcome:
    return command.run(
        arguments, wd, SECONDS, {**_QUIET, **trusted_environment()}, given=given.encode("utf-8", "replace")
    )


def _done(*texts: str) -> FollowUpEnded:
    return FollowUpEnded(FollowUpResult.DONE, tuple(Noted(text=_without_passwords(text)) for text in texts if text))


def _failed(text: str) -> FollowUpEnded:
    return FollowUpEnded(FollowUpResult.FAILED, (Warned(text=_without_passwords(text)),))


def _without_passwords(text: str) -> str:
    """A text whose addresses have lost the name and password before the host."""
    return re.sub(r"(?<=://)[^/\s@]+@", "***@", text)
