"""The seam between the loop and a terminal server: what the loop asks of one, and what it is told."""

from collections.abc import Sequence
from typing import Annotated, Final, Protocol, TypedDict, Unpack

from pydantic import Strict

from quintet.actions import TurnActions
from quintet.api.client import READ_SECONDS
from quintet.api.lenient import Lenient
from quintet.api.models import Failure, OwnAgent, RefusedHost, Sandbox, TokenCount
from quintet.api.status import TerminalStatus

INPUT_SECONDS: Final = 120.0


class TerminalView(Lenient):
    """What a server tells of a terminal; the defaults stand for what it does not tell."""

    id: str = ""
    session_name: str = ""
    status: Annotated[TerminalStatus, Strict(False)] = TerminalStatus.UNKNOWN
    reason: str = ""
    """why the status is error, or what the terminal waits for"""
    doubt: str = ""
    """how the server's sources for the status have disagreed for long"""
    typed_after: int | None = None
    """the number of its last turn, where somebody has typed a prompt in the terminal since"""
    dispatch_id: str = ""
    """of the last input that was typed"""
    last_screen: str = ""
    """with the status error: what the terminal showed last"""
    start_seconds: float | None = None
    """while it waits for its user before the first prompt: how long to wait for that"""
    attached: bool | None = None
    """at the same time: whether somebody is attached to it"""
    usage: Annotated[TokenCount | None, Strict(False)] = None
    """tokens of the last turn"""
    actions: Annotated[TurnActions | None, Strict(False)] = None
    """what the agent did in its last turn, where that has ended and somebody knows"""
    failure: Annotated[Failure | None, Strict(False)] = None
    """why the last turn ended without an answer"""
    sandbox: str = ""
    """the folder that its program has as `.tmp`; empty where it is in no sandbox"""
    continues: str = ""
    """the lost terminal whose conversation goes on in this one"""
    network: str = ""
    """what its sandbox leaves of the network, as `Sandbox.network_words` has it"""
    refused: Annotated[tuple[RefusedHost, ...], Strict(False)] = ()
    """hosts that its sandbox has refused"""


class LaunchOptions(TypedDict, total=False):
    """What may be said of a terminal's start; what is empty is left to the server."""

    model: str
    args: Sequence[str]
    permissions: str
    """`ask` or `unattended`"""
    continues: str
    """a lost terminal whose conversation goes on"""
    sandbox: Sandbox | None
    """what the agent's program can reach; None: all that the user can"""
    agent: OwnAgent | None
    """the agent, where the user has defined it"""


class Backend(Protocol):
    """A terminal server, as the loop uses it. Whoever calls may repeat reads; input is never repeated here."""

    @property
    def knows_dispatch_ids(self) -> bool:
        """Whether an input with the id of the last one is not typed again, and the server tells that id."""

    @property
    def replaces_terminals(self) -> bool:
        """Whether a terminal can go on with the conversation of a lost one."""

    @property
    def owns_sessions(self) -> bool:
        """Whether a session belongs to one run, and goes with it."""

    @property
    def counts_tokens(self) -> bool:
        """Whether the server tells what a turn has used."""

    @property
    def sees_typing(self) -> bool:
        """Whether the server tells that somebody has typed in a terminal."""

    @property
    def takes_permissions(self) -> bool:
        """Whether the setting `permissions` has an effect."""

    @property
    def takes_sandboxes(self) -> bool:
        """Whether the server can start an agent in a sandbox."""

    @property
    def takes_own_agents(self) -> bool:
        """Whether the server can start an agent that the user has defined."""

    def session_name(self, run_id: str) -> str:
        """A name for a new session of a run; empty where the server chooses it."""

    def create_session(
        self, profile: str, provider: str, *, session_name: str = "", **options: Unpack[LaunchOptions]
    ) -> TerminalView:
        """Create a session with its first terminal."""

    def create_terminal(
        self, session_name: str, profile: str, provider: str, **options: Unpack[LaunchOptions]
    ) -> TerminalView:
        """Add a terminal to a session; the answer may come before its agent is ready."""

    def get_terminal(self, terminal_id: str, seconds: float = READ_SECONDS) -> TerminalView:
        """What the server tells of a terminal."""

    def get_last_lines(self, terminal: TerminalView) -> str:
        """The last lines that a failed terminal has shown; empty where nobody knows."""

    def get_last_output(self, terminal_id: str) -> str:
        """The agent's last answer, as the server reads it from the screen or from the agent's records."""

    def fits(self, message: str) -> bool:
        """Whether a message can be sent as it is."""

    def send_input(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float = INPUT_SECONDS) -> None:
        """Type a message into a terminal."""

    def accept_permission(self, terminal_id: str) -> None:
        """Say yes to an agent that asks."""

    def exit_terminal(self, terminal_id: str) -> None:
        """End the agent in a terminal; one that is gone already is no error."""

    def forget_terminal(self, terminal_id: str) -> None:
        """End a terminal and remove what is left of it, where the server keeps anything."""

    def end_strays(self, session_name: str, but: str = "") -> dict[str, list[str]]:
        """End what finished turns have left running, of all terminals but one; by terminal, the commands."""

    def stop_processes(self, session_name: str) -> None:
        """Stop everything that runs in the terminals of a session, where the server can."""

    def continue_processes(self, session_name: str) -> None:
        """Let everything go on that was stopped."""

    def delete_session(self, session_name: str) -> None:
        """End a session and all its terminals; one that is gone already is no error."""

    def check_token(self) -> None:
        """Raise where the server does not let us in."""

    def close(self) -> None:
        """Close the connections to the server."""
