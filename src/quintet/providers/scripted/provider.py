"""How the server drives the scripted agent."""

import json
import sys
from pathlib import Path
from typing import ClassVar, Final

from quintet.api.status import FailureKind, TerminalStatus
from quintet.providers.base import Dialog, Failure, Launch, Plan, Provider, TurnRecord, Usage
from quintet.providers.screen import Screen
from quintet.providers.scripted import look
from quintet.roles import ROLES

RECORD: Final = "record.jsonl"
SCENARIO_VARIABLE: Final = "QUINTET_SCENARIO"


class ScriptedProvider(Provider):
    """The shipped fake: everything about it is real but the mind."""

    name: ClassVar[str] = "scripted"
    prompts: ClassVar[tuple[str, ...]] = (look.PROMPT,)
    commands: ClassVar[frozenset[str]] = frozenset({"/rename", "/exit"})
    settle_seconds: ClassVar[float] = 0.5
    start_seconds: ClassVar[float] = 30.0

    def launch(self, launch: Launch) -> Plan:
        role = next((role.name for role in ROLES if role.profile == launch.profile), launch.profile)
        argv = [sys.executable, "-P", "-m", "quintet.providers.scripted.agent", "--role", role]
        if "--no-record" not in launch.args:
            argv += ["--record", str(launch.folder / RECORD)]
        after = _turns_begun(launch.previous / RECORD) if launch.previous else 0
        if after:
            argv += ["--after", str(after)]
        scenario = launch.env.get(SCENARIO_VARIABLE)
        if scenario and "--scenario" not in launch.args:
            argv += ["--scenario", scenario]
        return Plan(argv=(*argv, *launch.args), continues=bool(after))

    def read_screen(self, screen: Screen) -> TerminalStatus:
        for line in reversed(screen.text.rstrip().split("\n")):
            if line.startswith(look.PROMPT.rstrip()):
                return TerminalStatus.IDLE
            if line.startswith(look.WORKING):
                return TerminalStatus.PROCESSING
            if line.startswith(look.QUESTION):
                return TerminalStatus.WAITING_USER_ANSWER
        return TerminalStatus.UNKNOWN

    def escape(self, message: str) -> str:
        return message  # a paste is text, whatever it begins with

    def holds_draft(self, screen: Screen, pasted: str) -> bool:
        # at work there is no composer; what then stands behind the sign is the prompt that was taken
        return self.read_screen(screen) is TerminalStatus.IDLE and super().holds_draft(screen, pasted)

    def dialog(self, screen: Screen, folder: Path) -> Dialog | None:  # noqa: ARG002
        lines = screen.text.rstrip().split("\n")
        if not lines[-1].startswith(look.DIALOG):
            return None
        if "(press t)" in lines[-1]:
            return Dialog(keys=("t",))
        return Dialog(message=lines[-1].removeprefix(look.DIALOG).strip())

    def read_reply(self, text: str) -> str:
        answers: list[list[str]] = []
        for line in text.split("\n"):
            if line.startswith(look.ANSWER):
                answers.append([])
            elif line.startswith(look.INDENT) and answers:
                answers[-1].append(line.removeprefix(look.INDENT))
            elif not line.strip() and answers:
                answers[-1].append("")
        return "\n".join(answers[-1]).strip() if answers else ""

    def record_position(self, folder: Path) -> int:
        try:
            return (folder / RECORD).stat().st_size
        except FileNotFoundError:
            return 0

    def read_record(self, folder: Path, since: int) -> TurnRecord | None:
        try:
            with (folder / RECORD).open("rb") as file:
                file.seek(since)
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return None
        found: TurnRecord | None = None
        for event in map(json.loads, lines):
            if event["event"] == "begin":
                found = TurnRecord(ended=False)
            elif event["event"] == "end" and found is not None:
                usage, failed = event.get("usage"), event.get("failed")
                found = TurnRecord(
                    True,
                    event["reply"],
                    failure=Failure(**{**failed, "kind": FailureKind(failed["kind"])}) if failed else None,
                    usage=Usage(**usage) if usage else None,
                )
        return found


def _turns_begun(record: Path) -> int:
    try:
        lines = record.read_bytes().splitlines()
    except FileNotFoundError:
        return 0
    return int(json.loads(lines[-1])["turn"]) if lines else 0


PROVIDER: Final = ScriptedProvider()
