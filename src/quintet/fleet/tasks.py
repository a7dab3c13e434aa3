"""A task of the queue as a value: what it is made of, how it stands, and how it has ended."""

import hashlib
import re
import time
from enum import StrEnum
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quintet.errors import QueueError
from quintet.prose import printable, slug

PRIORITY: Final = 5
"""of a task that is given none; smaller numbers come first"""
MOST_TAKEOVERS: Final = 3
_LONGEST_SLUG: Final = 40
_HASH: Final = 8


class TaskStatus(StrEnum):
    """How a task stands."""

    WAITING = "waiting"
    RUNNING = "running"
    PARKED = "parked"
    """it waits for a time, or for somebody: its reason says for what"""
    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED: Final = (TaskStatus.PASSED, TaskStatus.FAILED, TaskStatus.CANCELLED)


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TaskSpec(_Value):
    """Everything that a worker needs to carry out a task; no path of a machine but that of a local repository."""

    repository: str
    """the address of a remote; for a queue on one machine the folder of the repository"""
    is_local: bool
    """whether it is a folder"""
    folder: str = ""
    """the project within the repository; empty where it is all of it"""
    base: str
    """the commit that the task begins at"""
    text: str
    """the task file"""
    settings: dict[str, Any]
    """the settings of the project when the task was added, in the form of its config file"""
    prompt_texts: dict[str, str] = {}
    """the project's own prompt texts, by name"""

    @model_validator(mode="after")
    def _stays_where_it_belongs(self) -> Self:
        """Whoever can write to the database could else give git an option, or a folder that is not the task's."""
        if found := wrong_address(self.repository):
            raise ValueError(f"its repository {found}")
        if not re.fullmatch(r"[0-9a-f]+", self.base):
            raise ValueError("its base is no commit")
        if self.folder.startswith("/") or ".." in self.folder.split("/"):
            raise ValueError("its folder is not in the repository")
        if not all(re.fullmatch(r"\w+", name) for name in self.prompt_texts):
            raise ValueError("a prompt text has the name of another file")
        return self


class Needs(_Value):
    """What a task waits for, and what a worker must have to take it."""

    providers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    account: str = ""
    account_limit: int = 0
    """tasks of that account that may run at once, over all machines; 0: any number"""
    after: tuple[str, ...] = ()
    """tasks that have to pass first"""
    not_before: float = 0.0
    """seconds since the epoch"""
    priority: int = PRIORITY


class TaskProgress(_Value):
    """How far the run of a task has come, and where it is."""

    machine: str = ""
    slot: int = 0
    home: str = ""
    """the id of the machine that has the work tree"""
    run: str = ""
    round: int = 0
    phase: str = ""
    agent: str = ""
    """the role at work"""
    tokens: int = 0
    cost: float = 0.0
    lease: float = 0.0
    """after how many seconds without a heartbeat the machine counts as lost, as it knows it"""
    since: float = 0.0
    """when it was started on this machine, in seconds since the epoch"""


class TaskOutcome(_Value):
    """How a task has ended; small, as it stays in the database."""

    verdict: str
    """PASS or FAIL"""
    branch: str = ""
    commit: str = ""
    run: str = ""
    tokens: int = 0
    cost: float = 0.0
    reason: str = ""


class Approval(_Value):
    """What a person has said of what a task waits with."""

    step: str
    """where the run waits, as it calls it"""
    approved: bool
    by: str
    at: str
    """in UTC"""
    notes: str = ""


class QueuedTask(_Value):
    """A task in the queue."""

    id: str
    title: str
    repository: str
    status: TaskStatus
    needs: Needs = Needs()
    progress: TaskProgress = TaskProgress()
    outcome: TaskOutcome | None = None
    parked: str = ""
    """why it is parked"""
    parked_until: float = 0.0
    """0: until somebody says `queue retry`"""
    gate: str = ""
    """the step at which its run waits for a person; empty where it does not"""
    approval: Approval | None = None
    """the last word of a person"""
    checkpoint: str = ""
    """the commit that its worker has pushed last; nothing else in the remote counts"""
    result: TaskOutcome | None = None
    """its outcome, once that was pushed; until the engine has it too, its worker may die"""
    takeovers: int = 0
    attempt: int = 1
    """counts the runs that `queue retry` has begun anew"""
    added: float = 0.0
    ended: float = 0.0
    place: str = Field(default="", exclude=True)
    """the queue of the engine that it is in"""
    owner: str = Field(default="", exclude=True)
    """the slot that the engine has given it to"""
    token: str = Field(default="", exclude=True)
    """what the engine has written down of that giving; another one each time"""
    mark: float = Field(default=0.0, exclude=True)
    """when its row was written last, by the database's clock"""

    @property
    def branch(self) -> str:
        """The branch that it works on."""
        return branch_of(self.id, self.attempt)


def wrong_address(address: str) -> str:
    """What is wrong with the address of a remote; empty where git can be given it."""
    if address.startswith("-"):
        return "begins with -, as an option does"
    return "names a program that git would start" if re.match(r"\w+::", address) else ""


def is_task_id(name: str) -> bool:
    """Whether a name is one that `task_id` could have made: folders and branches have it in their names."""
    return bool(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,60}", name))


def read_spec(name: str, document: object) -> TaskSpec:
    """The spec of a task as it is in the database, where others may have written it."""
    try:
        if is_task_id(name):
            return TaskSpec.model_validate(document)
        why = "it has another kind of name"
    except ValidationError as error:
        why = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    raise QueueError(f"the task {printable(name)} was not added by Quintet: {why}")


def task_id(title: str, repository: str, base: str, text: str) -> str:
    """The name of a task: the same for the same text at the same commit of the same repository."""
    words = slug(title)
    plain = words if words.isascii() else slug(title.encode("ascii", "ignore").decode())
    digest = hashlib.sha256("\0".join((repository, base, text.strip())).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain[:_LONGEST_SLUG].strip('-')}-{digest[:_HASH]}"


def attempt_name(identifier: str, attempt: int) -> str:
    """The name of an attempt, from which branches and folders get theirs."""
    return identifier if attempt == 1 else f"{identifier}-try{attempt}"


def branch_of(identifier: str, attempt: int) -> str:
    """The branch of an attempt."""
    return f"quintet/{attempt_name(identifier, attempt)}"


def attributes_of(title: str, repository: str, needs: Needs) -> dict[str, Any]:
    """What is written about a new task beside its spec, for those who look at many."""
    moment = time.time()  # a file's database has whole seconds only
    return {"title": title, "repository": repository, "needs": needs.model_dump(mode="json"), "added": moment}
