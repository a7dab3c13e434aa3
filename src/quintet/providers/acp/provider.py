"""How the server drives an agent of the protocol: by what its host has recorded, and by the title that it sets."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from quintet.actions import TurnActions
from quintet.api.status import TerminalStatus
from quintet.errors import ServerError
from quintet.providers.acp import launch as launching
from quintet.providers.acp.agents import AcpAgent
from quintet.providers.acp.host_settings import DOORBELL, RECORD
from quintet.providers.acp.probe import try_session
from quintet.providers.base import Launch, LaunchPlan, Login, Provider, StartRefused, TurnRecord
from quintet.providers.file_follower import size_of
from quintet.providers.registration import by_variables
from quintet.providers.screen import Screen
from quintet.providers.turn_events import read_events, read_turn, read_turn_actions

_TITLE: Final = re.compile(r"quintet acp (\w+)\b")
_STATES: Final = {
    "ready": TerminalStatus.IDLE,
    "working": TerminalStatus.PROCESSING,
    "asks": TerminalStatus.WAITING_USER_ANSWER,
}


class AcpProvider(Provider):
    """One agent of the protocol, in the host that speaks to it."""

    prompts: ClassVar[tuple[str, ...]] = ("› ",)
    commands: ClassVar[frozenset[str]] = frozenset({"/rename"})
    decline_key: ClassVar[str] = "n"
    doorbell: ClassVar[str] = DOORBELL
    start_seconds: ClassVar[float] = 180.0
    """some load a conversation only in the minute after it was opened last"""

    def __init__(self, agent: AcpAgent) -> None:
        self.agent = self.registration = agent
        self.tested = agent.tested

    def find(self, env: Mapping[str, str], cwd: Path) -> str | None:
        try:
            return launching.find_agent(self.agent, {**env, **self.agent.env}, cwd)
        except ServerError:
            return None

    def launch(self, launch: Launch) -> LaunchPlan:
        return launching.plan(self.agent, launch)

    def read_screen(self, screen: Screen) -> TerminalStatus:
        found = _TITLE.match(screen.title)
        return _STATES.get(found[1], TerminalStatus.UNKNOWN) if found else TerminalStatus.UNKNOWN

    def screen_overrides_record(self, screen: Screen) -> bool:  # noqa: ARG002
        return False

    def asks_for_permission(self, text: str) -> bool:  # noqa: ARG002 - the protocol has no other question
        return True

    def sets_permissions(self, args: Sequence[str]) -> bool:
        return launching.sets_permissions(self.agent, args)

    def login(self, program: str, env: Mapping[str, str]) -> Login:  # noqa: ARG002
        agent = self.agent
        if not agent.keys and not agent.login_files:
            return Login.UNKNOWN
        home = Path(env.get("HOME") or Path.home())
        found = any(env.get(key) for key in agent.keys) or any(
            (home / by_variables(name, env).removeprefix("~/")).exists() for name in agent.login_files
        )
        return Login.FOUND if found else Login.NOT_SEEN

    def try_flags(self, launch: Launch) -> StartRefused | None:
        return try_session(self.agent, launch)

    def has_continued(self, folder: Path) -> bool:
        told = [
            event.get("loaded") is True for event in read_events(folder / RECORD) if event.get("event") == "session"
        ]
        return told[-1] if told else False

    def record_position(self, folder: Path) -> int:
        return size_of(folder / RECORD)

    def has_record(self, folder: Path) -> bool:
        return (folder / RECORD).exists()

    def read_record(self, folder: Path, since: int) -> TurnRecord | None:
        return read_turn(folder / RECORD, since)

    def read_actions(self, folder: Path, since: int) -> TurnActions | None:
        return read_turn_actions(folder / RECORD, since)

    def escape(self, message: str) -> str:
        return message  # the host sends it as text, whatever it begins with
