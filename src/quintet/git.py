"""The only module that runs git: a fixed environment, bytes in and out, a time limit, one kind of error.

Git runs no hook, no pager, no editor, no file system monitor and asks nothing; it takes no lock that it does not need
and refreshes no index on its own. Variables that name another repository are not passed on. What git converts (line
ends, filters) depends on the command: those that read or write file contents here are plumbing without conversion.
"""

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from quintet import files
from quintet.command import end_group, wait
from quintet.errors import GitError
from quintet.own_programs import find_program, trusted_environment

SECONDS: Final = 30.0
_LAST_SECONDS: Final = 10.0
"""for a command that is asked to end: on a busy machine it needs seconds to remove its locks"""
_PAUSE_SECONDS: Final = 0.01
_OPTIONS: Final = (
    *("--no-pager", "--no-optional-locks", "--no-replace-objects"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "diff.autoRefreshIndex=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "status.showUntrackedFiles=normal"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "submodule.recurse=false"),
)
_NO_HOOKS: Final = ("-c", "core.hooksPath=/dev/null")
_FIXED: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
_UNDER_WAY: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")
_KEPT: Final = (
    *("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH", "GIT_SSL_", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"),
    *("GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
)
"""the beginnings of git's variables that say who the user is and how to connect; all others could name a repository"""


@dataclass(frozen=True)
class GitResult:
    """How a git command ended."""

    code: int
    out: bytes
    said: str
    """its standard error"""

    @property
    def error(self) -> str:
        """Its last line on standard error."""
        return next(reversed(self.said.strip().splitlines()), "") or f"exit code {self.code}"

    @property
    def text(self) -> str:
        """The output without the line end behind it; bytes that are no UTF-8 survive as in file names."""
        return os.fsdecode(self.out.removesuffix(b"\n"))

    @property
    def parts(self) -> list[str]:
        """The output of a command with `-z`."""
        return os.fsdecode(self.out).split("\0")[:-1]


def run(
    folder: Path,
    *arguments: str,
    feed: bytes | IO[bytes] = b"",
    to: IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    hooks: bool = False,
    check: bool = True,
) -> GitResult:
    """Run git in a folder and wait for it. Raises GitError where it cannot run, takes too long, or fails.

    `feed` is its standard input, `to` a file for its output; `hooks` lets the repository's own hooks run; without
    `check` the caller looks at the exit code.
    """
    words = [find_program("git") or "git", *_OPTIONS, *(() if hooks else _NO_HOOKS), *arguments]
    environment = {**_inherited(), **trusted_environment(), **_FIXED, **(env or {})}
    # files and not pipes: a process that a hook leaves behind would keep a pipe open
    with ExitStack() as stack:
        try:
            given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            if isinstance(feed, bytes):
                given.write(feed)
                given.seek(0)
                feed = given
            code = _run_to_its_end(words, folder, environment, (feed, to or out, err), seconds)
        except OSError as error:
            raise GitError(f"git cannot be run in {folder}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise GitError(f"git {arguments[0]} in {folder} did not end within {seconds:.0f} s") from error
        result = GitResult(code, _content(out), _content(err).decode("utf-8", "replace"))
    if check and result.code:
        raise GitError(f"git {arguments[0]} in {folder} failed: {result.error}")
    return result


def _run_to_its_end(
    words: Sequence[str], folder: Path, env: Mapping[str, str], streams: tuple[IO[bytes], ...], seconds: float
) -> int:
    """The exit code of a command, of which nothing is left running."""
    given, out, err = streams
    process = subprocess.Popen(words, cwd=folder, env=env, stdin=given, stdout=out, stderr=err, start_new_session=True)
    try:
        wait(process, seconds)
    finally:
        _ask_to_end(process)
        end_group(process)
    return process.returncode


def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
    """Let a git that is still at work, and what it has started, remove lock files, which stay when it is killed."""
    if process.poll() is not None:
        return
    deadline = time.monotonic() + _LAST_SECONDS
    with suppress(ProcessLookupError, PermissionError):  # all have ended
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(_PAUSE_SECONDS)


def remove_locks(tree: Path) -> None:
    """Remove the locks that a killed git has left in a work tree in which nobody is at work."""
    branch = answer(tree, "symbolic-ref", "--quiet", "HEAD")
    for name in filter(None, ("index", "HEAD", branch)):
        path = answer(tree, "rev-parse", "--path-format=absolute", "--git-path", f"{name}.lock")
        if path:
            Path(path).unlink(missing_ok=True)


def answer(folder: Path, *arguments: str) -> str | None:
    """The output of a git command that only asks, for people to read; None where it cannot run or fails."""
    try:
        return run(folder, *arguments).out.decode("utf-8", "replace").removesuffix("\n")
    except GitError:
        return None


def copy_index(folder: Path, target: Path) -> None:
    """Copy the index with its time, by which git knows the files that were changed in the second it was written in."""
    own = folder / run(folder, "rev-parse", "--git-path", "index").text
    with suppress(FileNotFoundError), files.reading(own) as source:
        files.copy(source, target)
        written = os.fstat(source.fileno()).st_mtime_ns
        os.utime(target, ns=(written, written))


def is_repository(folder: Path) -> bool:
    """Whether a folder is in the work tree of a repository."""
    return answer(folder, "rev-parse", "--is-inside-work-tree") == "true"


def unfinished_command(folder: Path) -> str:
    """What git is in the middle of in a work tree, by the name of its file; empty where it is not."""
    for name in _UNDER_WAY:
        found = answer(folder, "rev-parse", "--path-format=absolute", "--git-path", name)
        if found and os.path.lexists(found):
            return name
    return ""


def is_hash(text: str) -> bool:
    """Whether a text is the whole hash of a commit."""
    return re.fullmatch("[0-9a-f]{40,64}", text) is not None


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
