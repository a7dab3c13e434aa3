"""The work of a task in its remote: a checkpoint that another machine goes on from, and the branch with the result.

A checkpoint is a commit with the work tree, and with the run's records below `.tmp`. What git ignores is not in it.
It is at `refs/quintet/NAME/state`. Every push names the commit that has to be there, so that a worker which has lost
its task, and does not know it, is refused: this is the second fence, as the database is the first.

Anybody with push rights can write to the remote, so the remote proves nothing: a checkpoint counts only if the database
has recorded its commit id, and what it says of a result is never read.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NoReturn

from quintet import files, git
from quintet.errors import GitError, QueueError
from quintet.fleet.choosing import machine_of_slot
from quintet.fleet.tasks import QueuedTask, TaskOutcome, TaskSpec, attempt_name, branch_of
from quintet.layout import JOURNAL, PROMPT_TEXTS, PROMPTS, PROTECTED, STATE, TMP, fleet_folder, record_folder
from quintet.prose import printable

SECONDS: Final = 600.0
"""for a git command that talks to a remote or writes a whole work tree"""
_REFUSED: Final = re.compile(r"\[remote rejected\].*(declined|denied|prohibited|not allowed)")
"""how a remote refuses what it would refuse again; all else may pass: a lock, a full disk, an error within it"""
_REMOVED: Final = ".old"
_NOT_THERE: Final = re.compile(r"not our ref|unadvertised object|remote error: .*not found", re.IGNORECASE)
"""how a remote says that it has no such commit, or none that it gives away"""
_MOST_PUSHES: Final = 3
"""attempts of a push while somebody else moves the ref"""
_DRAFT: Final = ".new"
"""the end of the name of a clone that is being made"""
_PAUSE_SECONDS: Final = 0.1
_LONGEST_ANSWER: Final = 500
RECORDS: Final = TMP / "records"
"""where the run's records are in a checkpoint"""
_KEPT: Final = (STATE, JOURNAL, "[0-9]*", f"{PROMPT_TEXTS}/*", f"{PROMPTS}/*", f"{PROTECTED}/*")
"""the files of a record that a run needs to go on; not its snapshots, nor its settings, which may hold secrets of a
machine: whoever goes on has those of the task"""
_NOBODY: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Quintet"), ("EMAIL", "quintet@localhost"))
}
"""who makes commits that nobody looks at"""


class Fenced(QueueError):  # noqa: N818 - reads as what happened
    """The remote has refused a push, because another worker has the task by now."""


class PushRefused(GitError):  # noqa: N818 - reads as what happened
    """The remote does not take what was pushed, and will not take it later."""


def make_checkpoint(top: Path, run_id: str) -> str:
    """Make a commit of the work tree and of the run's records, beside index and branch; the commit."""
    records = record_folder(run_id)
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _add_work(top, Path(folder) / "index")
        # what the project itself has there could be taken for the records of a run
        git.run(top, "rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", f":/{RECORDS}", env=index)
        if run_id and records.is_dir():
            own = {"GIT_INDEX_FILE": str(Path(folder) / "records"), "GIT_DIR": _git_folder(top)}
            present = [f":(glob){name}" for name in _KEPT if any(records.glob(name))]
            git.run(records, "--work-tree=.", "add", "--force", "--", *present, env=own, seconds=SECONDS)
            held = git.run(records, "write-tree", env=own).text
            git.run(top, "read-tree", f"--prefix={RECORDS}/", held, env=index)
        return _commit(top, git.run(top, "write-tree", env=index).text, "checkpoint", "HEAD")


def work_commit(top: Path, message: str) -> tuple[str, str]:
    """The commit that has all of the work: HEAD, or a new one on it where something is not committed.

    With it, what git says of files that it could not read and has left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        left_out = _add_work(top, Path(folder) / "index")
        held = git.run(top, "write-tree", env={"GIT_INDEX_FILE": str(Path(folder) / "index")}).text
    if held == git.run(top, "rev-parse", "HEAD^{tree}").text:
        return git.run(top, "rev-parse", "HEAD").text, left_out
    return _commit(top, held, message, "HEAD"), left_out


def _add_work(top: Path, index: Path) -> str:
    """Write the work tree to a copy of the index; what git says of files that it cannot read."""
    git.copy_index(top, index)
    return _add_all(top, _git_folder(top), index)


def _add_all(folder: Path, git_folder: str, index: Path) -> str:
    """Write a folder to an index; of repositories in it the files, as no other machine could fetch their commits."""
    env = {"GIT_INDEX_FILE": str(index), "GIT_DIR": git_folder, "GIT_WORK_TREE": str(folder)}
    nested = _repositories_in(folder, env)
    out = (f":(exclude,top,glob)**/{TMP}/**", *(f":(exclude,top,literal){path}" for path in nested))
    done = git.run(folder, "add", "--all", "--ignore-errors", "--", ".", *out, env=env, seconds=SECONDS, check=False)
    if done.code not in (0, 1):
        raise GitError(f"git add in {folder} failed: {done.error}")
    left_out = [done.error] if done.code else []
    for number, path in enumerate(nested):
        own = index.with_name(f"{index.name}-{number}")
        left_out.append(_add_all(folder / path, git_folder, own))
        held = git.run(folder, "write-tree", env=env | {"GIT_INDEX_FILE": str(own)}).text
        git.run(folder, "update-index", "--force-remove", "--", path, env=env)
        git.run(folder, "read-tree", f"--prefix={path}/", held, env=env)
    return next(filter(None, left_out), "")


def _repositories_in(folder: Path, env: Mapping[str, str]) -> list[str]:
    """The repositories that were made in a folder, but not its submodules, whose `.git` is a file."""
    unknown = git.run(folder, "ls-files", "--others", "--exclude-standard", "-z", env=env, seconds=SECONDS).parts
    known = git.run(folder, "ls-files", "--stage", "-z", env=env, seconds=SECONDS).parts
    found = [path.removesuffix("/") for path in unknown if path.endswith("/")]
    found += [line.partition("\t")[2] for line in known if line.startswith("160000 ")]
    return [path for path in found if (folder / path / ".git").is_dir()]


def _git_folder(top: Path) -> str:
    return git.run(top, "rev-parse", "--absolute-git-dir").text


def _commit(top: Path, tree: str, message: str, *parents: str) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    return git.run(top, "commit-tree", tree, *words, "-m", message, env=_NOBODY).text


class Clone:
    """The clone of a task's repository on this machine, and what the remote knows of the task."""

    def __init__(self, spec: TaskSpec, task_id: str, attempt: int, is_mine: Callable[[], bool] = lambda: False) -> None:
        """`is_mine` asks the database whether this worker has the task."""
        self.spec = spec
        self._is_mine = is_mine
        self.name = attempt_name(task_id, attempt)
        self.branch = branch_of(task_id, attempt)
        self.top = fleet_folder() / "trees" / self.name
        self.tree = self.top / spec.folder
        self.pushed = ""
        """the last commit that this worker has pushed"""
        self._tip = ""
        """what the remote's ref has to be for the next push to be taken"""
        self._lock = -1
        self._cache = fleet_folder() / "repositories" / f"{sha256(spec.repository.encode()).hexdigest()[:16]}.git"

    @property
    def state_ref(self) -> str:
        return f"refs/quintet/{self.name}/state"

    @property
    def archive_ref(self) -> str:
        return f"refs/quintet/{self.name}/archive"

    def open(self, recorded: str, *, keep: bool) -> str:
        """Prepare the clone at the recorded checkpoint, or at the base commit; return what was ignored, as one line.

        `recorded` is the commit id in the database. `keep`: this machine recorded it, so its clone is the newest.
        """
        self._hold()
        self._fetch()
        self._tip = self._remote_refs().get(self.state_ref, "")
        found, restored = self._tip, recorded
        is_kept = keep and self._has_commit(recorded)
        if not is_kept:
            self.remove()
            restored = self._make(recorded)
        self._claim(restored)
        if restored != recorded:
            return f"the checkpoint {recorded[:10]} is gone from the remote: the task starts over"
        if is_kept or found in ("", recorded):
            return ""
        follows = f"continues from {recorded[:10]}" if recorded else "starts from the beginning"
        return f"{self.state_ref} in the remote is {found[:10]}, which no worker has recorded: the task {follows}"

    def _has_commit(self, recorded: str) -> bool:
        """Whether the clone is there, and has made or fetched the recorded checkpoint."""
        there = bool(recorded) and (self.top / ".git").is_dir()
        return there and git.answer(self.top, "cat-file", "-e", f"{recorded}^{{commit}}") is not None

    def _hold(self) -> None:
        """Keep this machine from removing the clone as one that nobody needs; wait while it does."""
        if self._lock < 0:
            self._lock = open_tree_lock(self.name)
        while not files.try_lock(self._lock, shared=True):
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Let this machine remove the clone when nobody needs it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _fetch(self) -> None:
        """Bring the cache of the repository up to date; one process at a time."""
        files.make_folder(self._cache.parent)
        try:
            with files.locked(self._cache.with_suffix(".lock")):
                if not (self._cache / "HEAD").exists():
                    git.run(self._cache.parent, "init", "--quiet", "--bare", str(self._cache))
                if not self._has_base():
                    heads = "+refs/heads/*:refs/remotes/origin/*"
                    words = ("fetch", "--quiet", "--prune", self.spec.repository, heads)
                    git.run(self._cache, *words, seconds=SECONDS)
        except GitError as error:
            raise QueueError(f"the remote {self.spec.repository} cannot be read: {error}") from None
        if not self._has_base():
            raise QueueError(f"the remote {self.spec.repository} does not have the commit {self.spec.base[:10]}")

    def _has_base(self) -> bool:
        return git.answer(self._cache, "cat-file", "-e", f"{self.spec.base}^{{commit}}") is not None

    def _remote_refs(self) -> dict[str, str]:
        pattern = f"refs/quintet/{self.name}/*"
        try:
            files.make_folder(self._cache.parent)
            lines = git.run(self._cache.parent, "ls-remote", "--quiet", self.spec.repository, pattern).text.splitlines()
        except GitError as error:
            raise GitError(f"the remote {self.spec.repository} cannot be read: {error}") from None
        return {name: commit for commit, _, name in (line.partition("\t") for line in lines)}

    def _make(self, recorded: str) -> str:
        """Clone from the cache, without copying what is in it, at a checkpoint; return it if the remote has it."""
        files.make_folder(self.top.parent)
        draft = self.top.with_name(f"{self.name}{_DRAFT}")
        shutil.rmtree(draft, ignore_errors=True)
        words = ("clone", "--quiet", "--shared", "--no-checkout", "--no-tags", str(self._cache), str(draft))
        git.run(self.top.parent, *words, seconds=SECONDS)
        git.run(draft, "remote", "set-url", "origin", self.spec.repository)
        if git.answer(draft, "config", "user.email") is None:
            git.run(draft, "config", "user.name", "Quintet")
            git.run(draft, "config", "user.email", "quintet@localhost")
        git.run(draft, "checkout", "--quiet", "-B", self.branch, self.spec.base, seconds=SECONDS)
        if not (draft / self.spec.folder).is_dir():
            raise QueueError(f"{self.spec.folder} is not in the commit {self.spec.base[:10]}")
        shutil.rmtree(self._restored, ignore_errors=True)
        recorded = recorded if recorded and self._fetch_checkpoint(draft, recorded) else ""
        if recorded:
            self._restore(draft, recorded)
        draft.rename(self.top)  # only now: a clone that is there is complete
        return recorded

    def _fetch_checkpoint(self, top: Path, commit: str) -> bool:
        """Fetch exactly this commit, whatever the remote's ref is by now; whether the remote has it."""
        words = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", self.spec.repository, commit)
        done = git.run(top, *words, seconds=SECONDS, check=False)
        if done.code and not _NOT_THERE.search(done.said):  # the remote may be away: no reason to start over
            raise GitError(f"the remote {self.spec.repository} cannot be read: {done.error}")
        return not done.code

    def _restore(self, top: Path, commit: str) -> None:
        """Bring the work tree and the run's records back as the checkpoint has them."""
        parent = git.run(top, "rev-parse", f"{commit}^1").text
        git.run(top, "reset", "--quiet", "--hard", parent, seconds=SECONDS)
        work = (":/", f":(exclude,top){RECORDS}")
        git.run(top, "restore", f"--source={commit}", "--worktree", "--", *work, seconds=SECONDS)
        if git.answer(top, "cat-file", "-e", f"{commit}:{RECORDS}") is None:
            return
        files.make_folder(self._restored)  # a folder in which agents have nothing to do
        env = {"GIT_DIR": _git_folder(top), "GIT_WORK_TREE": str(self._restored)}
        words = ("restore", f"--source={commit}", "--worktree", "--", f":/{RECORDS}")
        git.run(self._restored, *words, env=env, seconds=SECONDS)

    @property
    def _restored(self) -> Path:
        return fleet_folder() / "tasks" / self.name / "restored"

    @property
    def records(self) -> Path:
        """The records of a run that was restored and has not gone on yet."""
        return self._restored / RECORDS

    def _claim(self, recorded: str) -> None:
        """Push a commit of this worker's own, so that no earlier one can push any more."""
        source = recorded or make_checkpoint(self.top, "")
        tree, parent = (git.run(self.top, "rev-parse", f"{source}^{end}").text for end in ("{tree}", "1"))
        self.push(_commit(self.top, tree, f"claim {secrets.token_hex(8)}", parent))

    def push(self, commit: str) -> None:
        """Push a checkpoint; Fenced where another worker has the task, GitError where the remote is away."""
        self._push(f"{commit}:{self.state_ref}")
        self._tip = self.pushed = commit

    def publish(self, outcome: TaskOutcome, branch: str, sealed: str) -> None:
        """Push the result: its branch, if there is one, and the archive instead of the checkpoint; all or nothing."""
        held = git.run(self.top, "rev-parse", f"{sealed or self.spec.base}^{{tree}}").text
        archive = _commit(self.top, held, outcome.model_dump_json(), outcome.commit or self.spec.base)
        if self.state_ref not in self._remote_refs():  # an answer was lost, or somebody has deleted it: it is the fence
            self.push(self.pushed)
        moves = [f"+{archive}:{self.archive_ref}", f":{self.state_ref}"]
        if branch:
            moves.append(f"+{outcome.commit}:refs/heads/{branch}")
        self._push(*moves)
        self.pushed = archive

    def _push(self, *moves: str) -> None:
        """Push to the address of the task: the remotes of the clone are the agents' to change.

        If the ref is not what this worker has left there, the database decides whose task it is. The ref is read before
        that, so that a worker which loses the task in between is refused once more.
        """
        for _ in range(_MOST_PUSHES):
            done = self._try_to_push(moves)
            if not done.code or b"stale info" not in done.out:
                break
            found = self._remote_refs().get(self.state_ref, "")
            if not self._is_mine():
                raise Fenced("another worker has the task by now")
            self._tip = found
        if done.code:
            self._tell_failed_push(done)

    def _try_to_push(self, moves: Sequence[str]) -> git.GitResult:
        fence = f"--force-with-lease={self.state_ref}:{self._tip}"
        words = ("push", "--porcelain", "--atomic", fence, self.spec.repository)
        return git.run(self.top, *words, *moves, seconds=SECONDS, check=False)

    def _tell_failed_push(self, done: git.GitResult) -> NoReturn:
        lines = [line.rpartition("\t")[2] for line in done.text.splitlines() if line.startswith("!")]
        refused = next(filter(_REFUSED.match, lines), "")
        why = refused or next(iter(lines), done.error)
        failed = f"the remote {self.spec.repository} cannot be pushed to: {why}"
        if not refused:
            raise GitError(failed)
        words = (line.removeprefix("remote:").strip() for line in done.said.splitlines() if line.startswith("remote:"))
        said = printable(" / ".join(filter(None, words)))[:_LONGEST_ANSWER]
        raise PushRefused(f"{failed}: {said}" if said else failed)

    def remove(self) -> None:
        """Remove the clone; what cannot be removed gets another name, and is tried again with the stale ones."""
        for folder in (self.top, self.top.with_name(f"{self.name}{_DRAFT}")):
            with suppress(OSError):
                aside = folder.with_name(f"{self.name}.{secrets.token_hex(4)}{_REMOVED}")
                folder.rename(aside)
                remove_tree(aside)


def remove_tree(folder: Path) -> None:
    """Remove as much of a folder as this user may, also what is write-protected."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(path).chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def open_tree_lock(tree: str) -> int:
    """A handle of the file whose lock the slots have that use a clone, and whoever removes it has alone."""
    path = fleet_folder() / "tasks" / tree.partition(".")[0] / "tree.lock"
    files.make_folder(path.parent)
    return files.open_to_keep(path)


def stale_trees(tasks: Iterable[QueuedTask], machine: str) -> list[Path]:
    """The clones here that no task needs: it has ended, or another machine has it. A slot may be making its own."""
    needed = {
        attempt_name(task.id, task.attempt)
        for task in tasks
        if machine in (task.progress.home, machine_of_slot(task.place))
    }
    trees = fleet_folder() / "trees"
    found = sorted(trees.iterdir()) if trees.is_dir() else []
    return [tree for tree in found if tree.name.removesuffix(_DRAFT) not in needed]


def forget(repository: str, names: Iterable[str]) -> bool:
    """Remove what the remote has of some attempts beside their branches; whether it has nothing more of them."""
    patterns = [f"refs/quintet/{name}/*" for name in names]
    with tempfile.TemporaryDirectory() as folder:
        git.run(Path(folder), "init", "--quiet", "--bare", ".")
        found = git.run(Path(folder), "ls-remote", "--quiet", repository, *patterns, check=False)
        refs = [line.partition("\t")[2] for line in found.text.splitlines()]
        words = ("push", "--quiet", repository, *(f":{ref}" for ref in refs))
        return not found.code and (not refs or not git.run(Path(folder), *words, seconds=SECONDS, check=False).code)
