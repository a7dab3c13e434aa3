"""What travels between a terminal server and its clients, as JSON. The names are CAO's; the last group is ours."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from quintet.actions import TurnActions
from quintet.api.status import FailureKind, TerminalStatus
from quintet.tokens import TokenCount as TokenCount  # noqa: PLC0414 - it is one of the models

TerminalId = Annotated[str, StringConstraints(pattern=r"^[a-f0-9]{8}$")]
MAX_MESSAGE: Final = 4 * 1024 * 1024
"""bytes of one input, as UTF-8"""


class OutputMode(StrEnum):
    """How much of a terminal's output is asked for."""

    FULL = "full"
    LAST = "last"


class Failure(BaseModel):
    """Why the last turn ended without an answer, by the agent's own account."""

    kind: FailureKind = FailureKind.OTHER
    text: str = Field(default="", description="the agent's own words")
    resets_at: datetime | None = Field(default=None, description="when a usage limit ends, where the agent says so")


class InitialDelivery(BaseModel):
    """What became of the message that came with a creation."""

    state: str = Field(description="pending, delivered or failed")


class RefusedHost(BaseModel):
    """A host that the sandbox has refused to a terminal's program."""

    host: str
    port: int
    times: int
    allow: str = Field(description="the entry of `domains` that would allow it")


class Terminal(BaseModel):
    """One agent in its pane."""

    model_config = ConfigDict(use_enum_values=True)

    id: str
    name: str = Field(description="the tmux window")
    provider: str
    session_name: str
    agent_profile: str | None = None
    model: str | None = None
    allowed_tools: list[str] | None = None
    caller_id: str | None = None
    tmux_session: str | None = None
    tmux_window: str | None = None
    working_directory: str | None = Field(default=None, description="where its program was started")
    description: str | None = Field(default=None, description="as given at its creation")
    initial_delivery: InitialDelivery | None = None
    shell_command: str | None = Field(default=None, description="the program in the pane")
    status: TerminalStatus | None = None
    last_active: datetime | None = None

    turn: int = Field(default=0, description="how many prompts were typed")
    dispatch_id: str | None = Field(default=None, description="the id of the last input that was typed")
    reason: str | None = Field(default=None, description="why the status is error, or what the terminal waits for")
    doubt: str | None = Field(
        default=None, description="how its screen and its record have disagreed on the turn for long"
    )
    typed_after: int | None = Field(
        default=None, description="the last turn, where somebody has typed a prompt in the terminal since"
    )
    last_screen: str | None = Field(default=None, description="with status error: what the terminal showed last")
    start_seconds: float | None = Field(
        default=None, description="while it waits for its user before the first prompt: how long others wait for that"
    )
    attached: bool | None = Field(default=None, description="at the same time: whether somebody is attached to it")
    accept_key: str | None = Field(default=None, description="while it asks for permission: the key that says yes")
    usage: TokenCount | None = Field(default=None, description="tokens of the last turn")
    actions: TurnActions | None = Field(
        default=None, description="what the agent did in the last turn, once that has ended; null where nobody knows"
    )
    failure: Failure | None = None
    sandbox: str | None = Field(
        default=None, description="the folder that its program has as `.tmp`; null where it is in no sandbox"
    )
    network: str | None = Field(default=None, description="what its sandbox leaves of the network")
    refused: list[RefusedHost] = Field(default=[], description="hosts that its sandbox has refused")
    continues: str | None = Field(default=None, description="the lost terminal whose conversation goes on here")


class Session(BaseModel):
    """One tmux server with the terminals of a run."""

    id: str
    name: str
    status: str = Field(description="active while somebody is attached, else detached; unknown: tmux does not answer")
    working_directory: str | None = None
    agent_profile: str | None = None
    reason: str | None = Field(default=None, description="why the status is unknown")


class SessionDetail(BaseModel):
    """A session and its terminals, oldest first."""

    session: Session
    terminals: list[Terminal]


class Sandbox(BaseModel):
    """What a terminal's program can reach. A path may begin with `~/`, or be relative to the working directory."""

    tmp: str = Field(description="the folder that the program has as `.tmp` in its working directory")
    git: str = Field(
        default="", description="the private git folder that lies over the repository's; without: read-only"
    )
    write: list[str] = Field(default=[], description="what it may write to beside the working directory")
    hide: list[str] = Field(default=[], description="what it cannot see, beside the secrets")
    show: list[str] = Field(default=[], description="what it can read although it would be hidden")
    env: list[str] = Field(default=[], description="variables that it gets beside the usual ones; `*`: any letters")
    caches: str = Field(default="", description="where packages are kept for the programs of several terminals")
    network: Annotated[str, StringConstraints(pattern="^(keep|allow|none)$")] = Field(
        default="keep", description="all of the machine's network, only the hosts in `domains`, or none"
    )
    domains: list[str] = Field(default=[], description="with allow: names, `*.name` or addresses, each may have a port")

    @property
    def network_words(self) -> str:
        """What it leaves of the network, in one text that can be compared."""
        return f"allow {','.join(sorted(self.domains))}" if self.network == "allow" else self.network


class OwnAgent(BaseModel):
    """An agent that the client defines: a program that speaks the Agent Client Protocol."""

    command: list[str] = Field(min_length=1, description="the program and its arguments")
    env: dict[str, str] = Field(default={}, description="variables that only this agent gets")
    mode: str = Field(default="", description="the session mode in which it does not ask")
    model: str = Field(default="", description="the model, where the terminal names none")
    instructions: Literal["", "first prompt", "system prompt"] = Field(
        default="", description="how the profile's text reaches it; by default before the first prompt"
    )
    install: str = Field(default="", description="the shell line that installs it")


class CreateBody(BaseModel):
    """The optional body of a creation."""

    args: list[str] = Field(default=[], description="the user's own arguments for the agent's program")
    env_vars: dict[str, str] | None = Field(default=None, description="variables to add to the program's environment")
    description: str | None = Field(default=None, max_length=1000, description="shown with the terminal")
    initial_message: str | None = Field(default=None, description="the first input, typed when the agent is ready")
    sandbox: Sandbox | None = Field(default=None, description="without it the program has all rights of its user")
    agent: OwnAgent | None = Field(default=None, description="what `provider` names, where the server does not know it")


class InputBody(BaseModel):
    """The body of an input that does not fit into a query string."""

    message: str | None = Field(default=None, description=f"at most {MAX_MESSAGE} bytes as UTF-8")
    dispatch_id: str | None = None


class Success(BaseModel):
    """It was done."""

    success: bool = True


class StraysEnded(BaseModel):
    """What finished turns had left running, and was ended."""

    ended: dict[str, list[str]] = {}
    """by terminal, the commands"""


class SessionDeleted(BaseModel):
    """A session has ended."""

    success: bool = True
    deleted: list[str]
    errors: list[str] = []


class Output(BaseModel):
    """Text of a terminal."""

    output: str
    mode: OutputMode


class Picture(BaseModel):
    """What a pane shows now."""

    text: str = Field(description="its lines, with the escape sequences of colours and no others")
    columns: int
    rows: int
    cursor: list[int] | None = Field(default=None, description="column and row, from 0")


class WorkingDirectory(BaseModel):
    """Where a terminal's program is now."""

    working_directory: str | None


class Health(BaseModel):
    """The server is up."""

    status: str = "ok"
    service: str = "quintet"
    version: str = ""
    terminal_backend: str = "tmux"
    components: dict[str, str] = {}


class Problem(BaseModel):
    """Why a request was refused."""

    detail: Any
