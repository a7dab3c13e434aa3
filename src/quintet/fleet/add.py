"""Put a task into the queue: what it is made of, and what is refused before anything is added."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from quintet import git
from quintet.ansi import plain
from quintet.config import Settings
from quintet.config.load import Loaded
from quintet.errors import GitError, QueueError
from quintet.fleet.database import Database
from quintet.fleet.task_settings import own_prompt_texts, settings_document
from quintet.fleet.tasks import PRIORITY, Needs, TaskSpec, attributes_of, branch_of, task_id, wrong_address
from quintet.loop.decide.task import parse_task, title_of
from quintet.loop.run.plan import check_settings
from quintet.workspace.creating import find_base
from quintet.workspace.repository import Repository, repository_of

_FETCH_SECONDS: Final = 600.0
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,40}")


@dataclass(frozen=True)
class Wish:
    """What the user asks for beside the task itself."""

    priority: int = PRIORITY
    after: Sequence[str] = ()
    not_before: float = 0.0
    labels: Sequence[str] = ()
    account: str = ""


@dataclass(frozen=True)
class Given:
    """A task file."""

    text: str
    name: str
    """what the user calls it"""


@dataclass(frozen=True)
class Source:
    """Where tasks of a project begin: its repository and a commit of it."""

    address: str
    is_local: bool
    folder: str
    base: str
    left_out: int
    """files with changes that are not committed, and so not in the task"""


def find_source(settings: Settings, *, is_local: bool) -> Source:
    """Where the tasks of a project begin; QueueError where workers could not get it."""
    repository = repository_of(settings.wd)
    base = find_base(repository, settings)
    changed = git.run(repository.top, "status", "--porcelain", "-z", "--untracked-files=normal").parts
    address = str(repository.top) if is_local else _remote(repository, base)
    return Source(address, is_local, repository.prefix, base, len(changed))


def _remote(repository: Repository, base: str) -> str:
    """The address of the repository's remote, which has to know the commit."""
    names = (git.answer(repository.top, "remote") or "").split()
    if not names:
        raise QueueError(
            f"{repository.top} has no remote, and a queue for many machines needs one that all of them can reach: "
            "git remote add origin URL && git push origin HEAD"
        )
    name = "origin" if "origin" in names else names[0]
    address = git.run(repository.top, "remote", "get-url", name).text
    if found := wrong_address(address):
        raise QueueError(f"the remote {name} cannot be used: its address {found}")
    try:
        words = git.run(repository.top, "ls-remote", "--quiet", address, "refs/heads/*").text.split()
    except GitError as error:
        raise QueueError(f"the remote {name} cannot be read: {error}") from None
    heads, branches = words[::2], words[1::2]
    if branches and not _is_known(repository, base, heads):
        # the remote may be ahead; its commits are brought here, and no branch is changed
        fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        git.run(repository.top, *fetch, address, *branches, seconds=_FETCH_SECONDS, check=False)
    if not _is_known(repository, base, heads):
        raise QueueError(f"the remote {name} does not have the commit {base[:10]}; push it first: git push {name} HEAD")
    return without_login(address)


def _is_known(repository: Repository, base: str, heads: Sequence[str]) -> bool:
    """Whether a commit is in one of the branches of a remote."""
    return any(git.answer(repository.top, "merge-base", "--is-ancestor", base, head) is not None for head in heads)


def without_login(address: str) -> str:
    """The address of a remote without a password or token; a worker uses its own."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return address
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def add_tasks(
    database: Database, loaded: Loaded, source: Source, given: Sequence[Given], wish: Wish
) -> list[tuple[str, bool]]:
    """Put tasks in, all or none; the id of each, and whether it was not there yet."""
    check_settings(loaded.settings)
    place = f"{source.address}#{source.folder}" if source.folder else source.address
    spec = TaskSpec(
        repository=source.address,
        is_local=source.is_local,
        folder=source.folder,
        base=source.base,
        text="",
        settings=settings_document(loaded),
        prompt_texts=own_prompt_texts(loaded.settings.prompts_dir),
    )
    if loaded.settings.approve and not source.is_local and not loaded.settings.queue_checkpoints:
        raise QueueError("APPROVE needs QUEUE_CHECKPOINTS: without them another machine could not go on after the word")
    needs, ids, tasks = _needs(loaded.settings, wish), [], {}
    for one in given:
        parse_task(one.text, one.name)
        title = plain(title_of(one.text))
        ids.append(task_id(title, place, source.base, one.text))
        told = attributes_of(title, place, needs) | {"attempt": _first_attempt(source, ids[-1])}
        tasks[ids[-1]] = (spec.model_copy(update={"text": one.text}), told)
    new = database.add(tasks)
    return [(one, one in new) for one in ids]


def _first_attempt(source: Source, identifier: str) -> int:
    """The attempt that a task begins with: the branches of one that was removed before stay as they are."""
    if not source.is_local:
        return 1
    branch = re.escape(branch_of(identifier, 1))
    names = git.run(Path(source.address), "for-each-ref", "--format=%(refname:short)", "refs/heads/quintet").text
    found = [re.fullmatch(rf"{branch}(?:-try(\d+))?(?:-\d+)?", name) for name in names.splitlines()]
    return max((int(one[1] or 1) + 1 for one in found if one), default=1)


def _needs(settings: Settings, wish: Wish) -> Needs:
    if wrong := [label for label in wish.labels if not _LABEL.fullmatch(label)]:
        raise QueueError(f"--label: found {wrong[0]!r}, allowed: letters, digits and . _ + -")
    limits = settings.queue_accounts or {}
    if wish.account and wish.account not in limits:
        known = f"known: {', '.join(sorted(limits))}" if limits else "none is set"
        raise QueueError(f"--account: QUEUE_ACCOUNTS (queue.accounts) has no {wish.account}; {known}")
    return Needs(
        providers=tuple(sorted({agent.provider for agent in settings.agents.values()})),
        labels=tuple(dict.fromkeys(wish.labels)),
        account=wish.account,
        account_limit=limits.get(wish.account, 0),
        after=tuple(dict.fromkeys(wish.after)),
        not_before=wish.not_before,
        priority=wish.priority,
    )
