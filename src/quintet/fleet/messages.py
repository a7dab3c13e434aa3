"""What a worker says to a slot, and what a slot and the process of a run say to each other: one JSON object a line."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from quintet.fleet.tasks import Approval, TaskOutcome, TaskSpec

_BEAT_SECONDS: Final = 15.0


class _SlotMessage(BaseModel):
    model_config = ConfigDict(frozen=True)


class SlotOrder(_SlotMessage):
    """What a slot is started with; on its standard input, where nobody else can read it."""

    url: str
    worker: str
    number: int
    machine: str
    lease: float
    providers: dict[str, dict[str, Any]] = {}
    """agents that the settings of this machine define; they may hold secrets, so that no task carries them"""
    sandbox: dict[str, Any] = {}
    """the sandbox settings of this machine, the least that every task gets"""

    @property
    def name(self) -> str:
        """What the engine knows the slot by: another machine's worker may come to have the same name."""
        return f"{self.worker}/{self.number}@{self.machine}"

    @property
    def beat(self) -> float:
        """Seconds between two heartbeats."""
        return min(_BEAT_SECONDS, self.lease / 8)

    @property
    def patience(self) -> float:
        """Seconds without a heartbeat after which a run stops; half of that later nothing of it is left."""
        return self.lease / 2


class Order(_SlotMessage):
    """What the process of a run is started with."""

    task: str
    attempt: int
    title: str
    spec: TaskSpec
    patience: float
    """seconds without a word of the slot after which the run stops"""
    tree: str = ""
    """the clone that it works in; empty where it makes a worktree of a local repository"""
    records: str = ""
    """the records of a run that was restored from a checkpoint"""
    makes_checkpoints: bool = False
    approval: Approval | None = None
    providers: dict[str, dict[str, Any]] = {}
    """agents that the settings of the machine define"""
    sandbox: dict[str, Any] = {}
    """the sandbox settings of the machine, the least that the task gets"""


class Moved(_SlotMessage):
    """How far the run has come."""

    kind: Literal["moved"] = "moved"
    run: str = ""
    round: int = 0
    phase: str = ""
    agent: str = ""
    tokens: int = 0
    cost: float = 0.0


class CheckpointMade(_SlotMessage):
    """A checkpoint was made, and can be pushed."""

    kind: Literal["saved"] = "saved"
    commit: str


class RunEnded(_SlotMessage):
    """The run has ended with a verdict."""

    kind: Literal["ended"] = "ended"
    outcome: TaskOutcome


class RunHalted(_SlotMessage):
    """The run has stopped before its end, and can go on later."""

    kind: Literal["halted"] = "halted"
    reason: str
    was_told: bool = False
    """by a signal: its slot wants it to stop, or is gone"""
    until: float = 0.0
    """when a usage limit or the wait for a person ends, in seconds since the epoch; 0: never"""
    gate: str = ""
    """the step at which it waits for a person"""


Message = Annotated[Moved | CheckpointMade | RunEnded | RunHalted, Field(discriminator="kind")]
_ADAPTER: Final[TypeAdapter[Message]] = TypeAdapter(Message)


def confirmation(moment: float) -> bytes:
    """That the slot had the task at a moment of the monotonic clock, which is the same for all processes here.

    Without one for a while the process of the run stops.
    """
    return f"{moment!r}\n".encode()


def last_confirmed(data: bytes) -> float:
    """The last moment that confirmations tell of; long ago where none of them is whole."""
    moments = [line for line in data.split(b"\n")[:-1] if line]
    return float(moments[-1]) if moments else float("-inf")


def read_message(line: bytes) -> Any:
    """The message of a line."""
    return _ADAPTER.validate_json(line)
