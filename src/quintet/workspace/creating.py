"""Make the worktree of a run, on a branch of its own, outside the user's checkout.

It is written down before anything is made. What a killed process leaves half made is removed by the next one.
"""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from quintet import files, git
from quintet.config import Settings
from quintet.errors import GitError, RunError
from quintet.layout import NOT_TMP, TMP, worktrees_folder
from quintet.processes import start_time
from quintet.prose import slug
from quintet.workspace.removing import remove
from quintet.workspace.repository import SECONDS, Repository, repository_of
from quintet.workspace.worktrees import Stage, Worktree, worktrees_of

_LONGEST_NAME: Final = 40
_SLUG: Final = "{slug}"
_OPENSPEC: Final = "openspec"
_MESSAGE: Final = "Changes that were not committed"


def task_digest(prompt: str) -> str:
    """A name for the text of a task."""
    return hashlib.sha256(prompt.strip().encode("utf-8", "surrogatepass")).hexdigest()[:32]


def create(settings: Settings, title: str) -> Worktree:
    """Make a worktree for the run of a task; RunError with one line where that cannot be done."""
    with _making(settings) as (repository, base):
        for one in worktrees_of(settings.wd):
            # where a run has been, its archive is moved first: discard and clean do that
            if one.stage is not Stage.READY and not one.has_maker and not (one.tree / TMP).exists():
                remove(one, repository)
        return _make(repository, settings, title, base)


def renew(worktree: Worktree, settings: Settings) -> Worktree | None:
    """Let a worktree begin where a new one would; None where that would change work in it."""
    with _making(settings) as (repository, base):
        start = _start(repository, settings, base)
        if repository.branch_commit(worktree.branch) != worktree.start:
            return None
        for path in worktree.included:
            if files.look(worktree.tree / path, worktree.tree):
                files.remove(worktree.tree / path, worktree.tree)
        if git.run(worktree.top, "reset", "--quiet", "--keep", start, seconds=SECONDS, check=False).code:
            return None
        maker = {"pid": os.getpid(), "started": start_time(os.getpid())}
        included = _include(settings, worktree.tree)
        renewed = worktree.model_copy(update={"base": base, "start": start, "included": included, **maker})
        renewed.save()
        return renewed


@contextmanager
def _making(settings: Settings) -> Iterator[tuple[Repository, str]]:
    """The repository, in which no other process makes a worktree meanwhile, and the commit to begin at."""
    repository = repository_of(settings.wd)
    base = find_base(repository, settings)
    try:
        with repository.locked():
            _refuse_second(settings)
            yield repository, base
    except GitError as error:
        raise RunError(f"no worktree could be made: {error}") from None
    except OSError as error:
        raise RunError(f"no worktree could be made: {error.filename}: {error.strerror}") from None


def find_base(repository: Repository, settings: Settings) -> str:
    """The commit that a new worktree begins at; RunError where there is none, or where it lacks what agents need."""
    named = settings.workspace_base or "HEAD"
    base = repository.commit_of(named)
    if not base and not settings.workspace_base:
        raise RunError(f"{settings.wd}: a worktree begins at a commit, and there is none yet; make one (git commit)")
    if not base:
        raise RunError(f"WORKSPACE_BASE: there is no commit {named} in {repository.top}")
    if settings.workspace_with_changes and base != repository.commit_of("HEAD"):
        raise RunError("--with-changes takes along what is not committed on HEAD; leave WORKSPACE_BASE out")
    openspec = f"{repository.prefix}/{_OPENSPEC}".lstrip("/")
    is_committed = git.answer(repository.top, "cat-file", "-e", f"{base}:{openspec}") is not None
    if (settings.wd / _OPENSPEC).is_dir() and not is_committed and not settings.workspace_with_changes:
        raise RunError(
            f"{_OPENSPEC}/ is not in the commit that the worktree begins at; "
            f"commit it first (git add . && git commit), or run with --with-changes"
        )
    return base


def _refuse_second(settings: Settings) -> None:
    """Refuse to begin a task twice in the same moment; later, the run of the first is found and is at work."""
    task = task_digest(settings.prompt)
    for one in worktrees_of(settings.wd):
        if one.task == task and one.pid != os.getpid() and one.has_maker and settings.resume is not False:
            raise RunError(f"the process {one.pid} is beginning this task in {one.tree}; wait for it or stop it")


def _make(repository: Repository, settings: Settings, title: str, base: str) -> Worktree:
    short = _plain_slug(title)
    name = f"{_plain_slug(repository.top.name)[:_LONGEST_NAME]}-{short[:_LONGEST_NAME]}-{secrets.token_hex(3)}"
    root = Path(settings.workspace_dir or worktrees_folder())
    _check_outside(root, repository)
    files.make_folder(worktrees_folder())
    new = Worktree(
        name=name,
        project=settings.wd,
        top=Path(os.path.realpath(root)) / name,
        prefix=repository.prefix,
        branch=_free_branch(repository, settings.workspace_branch.replace(_SLUG, short)),
        base=base,
        start=_start(repository, settings, base),
        task=task_digest(settings.prompt),
        pid=os.getpid(),
        started=start_time(os.getpid()),
    )
    new.save()
    try:
        words = ("worktree", "add", "--quiet", "-b", new.branch, str(new.top), new.start)
        git.run(repository.top, *words, seconds=SECONDS)
        if not new.tree.is_dir():
            files.make_folder(new.tree, new.top)
        ready = new.model_copy(update={"stage": Stage.READY, "included": _include(settings, new.tree)})
        ready.save()
    except BaseException:
        remove(new, repository)
        raise
    return ready


def _plain_slug(text: str) -> str:
    """A slug of ASCII letters: branches and folders of other alphabets are trouble on some systems."""
    return slug(text.encode("ascii", "ignore").decode()) if slug(text).isascii() is False else slug(text)


def _check_outside(root: Path, repository: Repository) -> None:
    """A worktree in the checkout would be among its files."""
    if Path(os.path.realpath(root)).is_relative_to(os.path.realpath(repository.top)):
        raise RunError(f"WORKSPACE_DIR: {root} is in the repository {repository.top}; name a folder outside of it")


def _free_branch(repository: Repository, wanted: str) -> str:
    if git.answer(repository.top, "check-ref-format", "--branch", wanted) != wanted:
        raise RunError(f"WORKSPACE_BRANCH: {wanted} is no name for a branch")
    for parent in map(str, PurePosixPath(wanted).parents):
        if parent != "." and repository.branch_commit(parent):
            raise RunError(
                f"WORKSPACE_BRANCH: git makes no branch {wanted} beside your branch {parent} "
                f"(name the branches of runs otherwise, as run-{_SLUG})"
            )
    number, name = 1, wanted
    while repository.branch_commit(name):
        number += 1
        name = f"{wanted}-{number}"
    return name


def _start(repository: Repository, settings: Settings, base: str) -> str:
    return _commit_changes(repository, base, _to_include(settings)) if settings.workspace_with_changes else base


def _commit_changes(repository: Repository, base: str, without: Iterable[str]) -> str:
    """A commit of what is not committed in the checkout, made beside its index; the base where nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        git.copy_index(repository.top, index)
        env = {"GIT_INDEX_FILE": str(index)}
        not_tmp = f":(exclude,top,glob)**/{TMP}/**"  # to exclude a whole folder that is ignored is an error for git
        git.run(repository.project, "add", "--all", "--", ":/", not_tmp, env=env, seconds=SECONDS)
        if paths := [f":(literal){path}" for path in without]:
            git.run(repository.project, "rm", "--quiet", "--cached", "--ignore-unmatch", "--", *paths, env=env)
        tree = git.run(repository.top, "write-tree", env=env).text
    if tree == git.run(repository.top, "rev-parse", f"{base}^{{tree}}").text:
        return base
    return git.run(repository.top, "commit-tree", "-p", base, "-m", _MESSAGE, tree).text


def _to_include(settings: Settings) -> list[str]:
    """The untracked files that the settings name."""
    globs = [f":(glob){pattern}" for pattern in settings.workspace_include]
    found = git.run(settings.wd, "ls-files", "-z", "--others", "--", *globs, NOT_TMP).parts if globs else []
    return [path for path in found if not path.endswith("/")]


def _include(settings: Settings, tree: Path) -> tuple[str, ...]:
    """Copy the untracked files that the settings name; their paths."""
    copied = []
    for path in _to_include(settings):
        if not files.look(tree / path, tree):
            files.duplicate(settings.wd / path, tree / path, tree)
            copied.append(path)
    return tuple(copied)
