"""How the server drives the scripted agent."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from quintet.actions import ActionKind, TurnActions, action, bounded
from quintet.api.status import FailureKind, TerminalStatus
from quintet.errors import ConfigError, ServerError
from quintet.providers.base import Dialog, Launch, LaunchPlan, Provider, RecordedFailure, TurnRecord
from quintet.providers.json_lines import as_object, json_object, text_in
from quintet.providers.registration import Registration
from quintet.providers.reset_times import LATEST
from quintet.providers.screen import Screen
from quintet.providers.scripted import SCENARIO_VARIABLE, SCRIPTED, screen_marks
from quintet.providers.scripted.scenario import load_role_script
from quintet.roles import ROLES
from quintet.tokens import TokenCount, recorded_tokens

RECORD: Final = "record.jsonl"


class ScriptedProvider(Provider):
    """The scripted agent: a real program in a real terminal, without a model."""

    registration: ClassVar[Registration] = SCRIPTED
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
        return LaunchPlan(argv=(*argv, *launch.args), continues=bool(after))

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
        try:
            return (folder / RECORD).stat().st_size
        except FileNotFoundError:
            return 0

    def has_record(self, folder: Path) -> bool:
        return (folder / RECORD).exists()

    def read_actions(self, folder: Path, since: int) -> TurnActions | None:
        found: TurnActions | None = None
        for event in _events(folder / RECORD, since):
            kind, code = text_in(event, "kind"), event.get("exit_code")
            if event.get("event") == "begin":
                found = TurnActions()
            elif event.get("event") == "action" and found is not None and kind in set(ActionKind):
                done = action(ActionKind(kind), text_in(event, "text"), code if type(code) is int else None)
                found += bounded([done])
        return found

    def read_record(self, folder: Path, since: int) -> TurnRecord | None:
        found: TurnRecord | None = None
        for event in _events(folder / RECORD, since):
            if event.get("event") == "begin":
                found = TurnRecord(ended=False, typed=found is not None)
            elif event.get("event") == "end" and found is not None:
                found = TurnRecord(True, text_in(event, "reply"), _failure(event), _usage(event), typed=found.typed)
        return found


def _events(record: Path, since: int) -> list[dict[str, Any]]:
    """The whole lines of a record after a position; none where there is no record."""
    try:
        with record.open("rb") as file:
            file.seek(since)
            return [json_object(line) for line in file.read().split(b"\n")[:-1]]
    except FileNotFoundError:
        return []


def _turns_begun(record: Path) -> int:
    try:
        lines = record.read_bytes().splitlines()
    except FileNotFoundError:
        return 0
    # the last line may be torn: its writer was killed
    numbers = (json_object(line).get("turn") for line in reversed(lines))
    return next((number for number in numbers if type(number) is int), 0)


def _failure(event: Mapping[str, Any]) -> RecordedFailure | None:
    failed = event.get("failed")
    if not isinstance(failed, dict):
        return None
    kind, ends = text_in(failed, "kind"), failed.get("resets_at")
    return RecordedFailure(
        FailureKind(kind) if kind in set(FailureKind) else FailureKind.OTHER,
        text_in(failed, "text"),
        ends if isinstance(ends, float) and 0.0 <= ends < LATEST else None,
    )


def _usage(event: Mapping[str, Any]) -> TokenCount | None:
    usage = as_object(event.get("usage"))
    return recorded_tokens(*map(usage.get, ("input_tokens", "cached_tokens", "output_tokens"))) if usage else None


PROVIDER: Final = ScriptedProvider()
