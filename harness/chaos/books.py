"""What a run has left on its disk, read by somebody who was not there."""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from quintet.errors import StateError
from quintet.loop.decide.markup import normalise
from quintet.loop.decide.state import State
from quintet.loop.record.state_file import load_state
from quintet.roles import ROLES

STATE: Final = Path(".tmp") / "quintet-state.json"
_WHY: Final = frozenset({"noted", "warned"})
_EVIDENT: Final = frozenset({"terminal_created", "turn_failed", "limit_reached"})
"""events that say by themselves that an agent needs its prompt once more"""


class Books:
    """The files below a project's `.tmp/`."""

    def __init__(self, wd: Path) -> None:
        self.wd = wd

    @property
    def state_file(self) -> Path:
        return self.wd / STATE

    def state(self) -> State | None:
        return load_state(self.state_file)

    def unloadable(self) -> list[str]:
        """A complaint where the state file is there and cannot be loaded."""
        try:
            self.state()
        except StateError as error:
            return [f"the state file cannot be loaded: {error}"]
        return []

    def journals(self) -> dict[str, list[dict[str, Any]]]:
        """The events of every run, by its id; a line that was torn is passed over, as every reader does."""
        found: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(self.wd.glob(".tmp/*/journal.jsonl")):
            events = found.setdefault(path.parent.name, [])
            for line in path.read_bytes().splitlines():
                try:
                    events.append(json.loads(line))
                except ValueError:
                    continue
        return found

    def left_behind(self) -> set[str]:
        """The terminals that a journal has warned of: of runs that the user has turned away from, and those that a
        server which was away did not end."""
        states = [load_state(path) for path in self.wd.glob(f".tmp/*/{STATE.stem}*.json")]
        if any("some terminals may live on" in event.get("text", "") for event in self._last_journal()):
            states.append(self.state())
        return {terminal.id for state in states if state for terminal in state.terminals.values()}

    def _last_journal(self) -> list[dict[str, Any]]:
        journals = self.journals()
        return journals[max(journals)] if journals else []

    def terminals(self) -> set[str]:
        """Every terminal that a journal names."""
        return {
            event["terminal"]
            for events in self.journals().values()
            for event in events
            if event["event"] == "terminal_created"
        }

    def lost(self, written: Iterable[bytes]) -> list[str]:
        """Complaints about responses that are neither in the outputs nor in an archive."""
        state = self.state()
        kept = set(state.outputs.values()) if state else set()
        for path in self.wd.glob(".tmp/*/[0-9][0-9][0-9]-*.md"):
            if path.is_file() and not path.is_symlink():
                kept.add(path.read_bytes().decode("utf-8", "replace"))
        known = {normalise(text).strip() for text in kept}
        return [
            f"a response is lost: {text.strip().splitlines()[-1]!r}"
            for text in dict.fromkeys(one.decode("utf-8", "replace") for one in written)
            if normalise(text).strip() not in known
        ]

    def repeated(self, arrived: Iterable[str]) -> list[str]:
        """Complaints about prompts that reached an agent more than once without a word in the journal."""
        times: dict[str, int] = {}
        for key in arrived:
            times[key] = times.get(key, 0) + 1
        journals = self.journals()
        return [
            f"the prompt {key} arrived {number} times, and the journal does not say why"
            for key, number in times.items()
            if number - 1 > max((_reasons(events, run, key, number) for run, events in journals.items()), default=0)
        ]


def step_marker(run_id: str, step: str) -> str:
    """The end marker of a step's heredoc, by which a prompt is known on a server without dispatch ids."""
    return f"QUINTET_END_{hashlib.sha256(f'{run_id}{chr(10)}{step}'.encode()).hexdigest()[:16].upper()}"


def _reasons(events: list[dict[str, Any]], run: str, key: str, times: int) -> int:
    """How many repetitions of a step's prompt its journal gives a reason for."""
    sent = [
        number
        for number, event in enumerate(events)
        if event["event"] == "prompt_sent" and _is_of(key, run, event["step"])
    ]
    if not sent:
        return 0
    role = events[sent[0]]["role"]
    # where one could not be written down, all but the first creation of the terminal may have come in between
    between = events[sent[0] :] if len(sent) >= times else events[len(ROLES) + 1 :]
    return sum(_is_reason(event, role) for event in between)


def _is_of(key: str, run: str, step: str) -> bool:
    """Whether a prompt is of a step; a dispatch id also numbers the repetitions of a failed turn."""
    return key == step_marker(run, step) or re.fullmatch(re.escape(f"{run}-{step}") + r"(-\d+)?", key) is not None


def _is_reason(event: dict[str, Any], role: str) -> bool:
    if event["event"] in _WHY:
        return role in event["text"]
    return event["event"] in _EVIDENT and bool(event["role"] == role)
