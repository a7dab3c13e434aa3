"""How the server drives the scripted agent."""

import sys
from pathlib import Path
from typing import ClassVar, Final

from quintet.actions import TurnActions
from quintet.api.status import TerminalStatus
from quintet.errors import ConfigError, ServerError
from quintet.providers.base import Dialog, Launch, LaunchPlan, Provider, TurnRecord
from quintet.providers.file_follower import size_of
from quintet.providers.registration import Registration
from quintet.providers.screen import Screen
from quintet.providers.scripted import SCENARIO_VARIABLE, SCRIPTED, screen_marks
from quintet.providers.scripted.scenario import load_role_script
from quintet.providers.turn_events import read_events, read_turn, read_turn_actions
from quintet.roles import ROLES

RECORD: Final = "own/record.jsonl"


class ScriptedProvider(Provider):
    """The scripted agent: a real program in a real terminal, without a model."""

    registration: Registration = SCRIPTED
    prompts: ClassVar[tuple[str, ...]] = (screen_marks.PROMPT,)
    commands: ClassVar[frozenset[str]] = frozenset({"/rename", "/exit"})
    decline_key: ClassVar[str] = "n"
    settle_seconds: ClassVar[float] = 0.5
    quiet_seconds: ClassVar[float] = 0.2
    start_seconds: ClassVar[float] = 30.0

    def launch(self, launch: Launch) -> LaunchPlan:
        role = next((role.name for role in ROLES if role.profile == launch.profile), launch.profile)
        argv = [sys.executable, "-P", "-m", "quintet.providers.scripted.agent", "--role", role]
        if "--no-record" not in launch.args:
            argv += ["--record", str(launch.folder / RECORD)]
        after = _turns_begun(launch.previous / RECORD) if launch.previous else 0
        if after:
            argv += ["--after", str(after)]
        scenario = launch.env.get(SCENARIO_VARIABLE)
        if scenario and "--scenario" not in launch.args:
            try:
                load_role_script(Path(scenario), role)
            except ConfigError as error:
                raise ServerError(str(error)) from None
            argv += ["--scenario", scenario]
        argv += launch.args
        scripts = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word == "--scenario"]
        return LaunchPlan(argv=tuple(argv), continues=bool(after), reads=tuple(scripts))

    def read_screen(self, screen: Screen) -> TerminalStatus:
        for line in reversed(screen.text.rstrip().split("\n")):
            if line.startswith(screen_marks.PROMPT.rstrip()):
                return TerminalStatus.IDLE
            if line.startswith(screen_marks.WORKING):
                return TerminalStatus.PROCESSING
            if line.startswith((screen_marks.PERMISSION, screen_marks.QUESTION)):
                return TerminalStatus.WAITING_USER_ANSWER
        return TerminalStatus.UNKNOWN

    def asks_for_permission(self, text: str) -> bool:
        return text.rstrip().split("\n")[-1].startswith(screen_marks.PERMISSION)

    def escape(self, message: str) -> str:
        return message  # a paste is text, whatever it begins with

    def holds_draft(self, screen: Screen, pasted: str) -> bool:
        # at work there is no composer; what then stands behind the sign is the prompt that was taken
        return self.read_screen(screen) is TerminalStatus.IDLE and super().holds_draft(screen, pasted)

    def startup_dialog(self, screen: Screen, folder: Path) -> Dialog | None:  # noqa: ARG002
        lines = screen.text.rstrip().split("\n")
        if not lines[-1].startswith(screen_marks.DIALOG):
            return None
        if "(press t)" in lines[-1]:
            return Dialog(keys=("t",))
        return Dialog(message=lines[-1].removeprefix(screen_marks.DIALOG).strip())

    def read_reply(self, text: str) -> str:
        answers: list[list[str]] = []
        for line in text.split("\n"):
            if line.startswith(screen_marks.ANSWER):
                answers.append([])
            elif line.startswith(screen_marks.INDENT) and answers:
                answers[-1].append(line.removeprefix(screen_marks.INDENT))
            elif not line.strip() and answers:
                answers[-1].append("")
        return "\n".join(answers[-1]).strip() if answers else ""

    def record_position(self, folder: Path) -> int:
        return size_of(folder / RECORD)

    def has_record(self, folder: Path) -> bool:
        return (folder / RECORD).exists()

    def read_actions(self, folder: Path, since: int) -> TurnActions | None:
        return read_turn_actions(folder / RECORD, since)

    def read_record(self, folder: Path, since: int) -> TurnRecord | None:
        return read_turn(folder / RECORD, since)


def _turns_begun(record: Path) -> int:
    numbers = [number for event in read_events(record) if type(number := event.get("turn")) is int]
    return numbers[-1] if numbers else 0


PROVIDER: Final = ScriptedProvider()
