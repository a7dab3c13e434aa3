"""What people tell a run: their word at a gate, notes for its agents, a wish to pause. Files in the run's record."""

import getpass
import json
import os
import unicodedata
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from quintet import files
from quintet.errors import RunError

FOLDER: Final = "people"
LONGEST_TEXT: Final = 100_000
"""characters of a note, or of the reason for a rejection"""
_LARGEST: Final = 4_000_000
_PAUSE: Final = "pause"


@dataclass(frozen=True)
class Decision:
    """The word of a person at a gate."""

    approved: bool
    by: str
    at: str
    """in UTC"""
    notes: str = ""


@dataclass(frozen=True)
class PersonNote:
    """What a person wants a role to know with its next prompt."""

    text: str
    by: str
    at: str
    role: str = ""
    """empty: whoever is asked next"""
    id: str = ""


_DECISION: Final = TypeAdapter(Decision)
_NOTE: Final = TypeAdapter(PersonNote)


class People:
    """What was said about one run. A file is written whole and once; nobody changes another's."""

    def __init__(self, record: Path) -> None:
        self._folder = record / FOLDER

    def decide(self, gate: str, decision: Decision) -> None:
        """Say yes or no at a gate; RunError where somebody was first."""
        try:
            files.write_new(self._folder / f"{gate}.json", json.dumps(asdict(decision)))
        except FileExistsError:
            first = self.decision(gate)
            if first is None:  # nobody could ever read it: it must not be the last word
                files.write(self._folder / f"{gate}.json", json.dumps(asdict(decision)), durable=True)
                return
            word = "approved" if first.approved else "sent back"
            raise RunError(f"{first.by} was first: it is {word} already") from None
        except OSError as error:
            raise _cannot_write(error) from None

    def decision(self, gate: str) -> Decision | None:
        """What was said at a gate; None where nobody has said anything yet."""
        try:
            return _DECISION.validate_json(files.read(self._folder / f"{gate}.json", _LARGEST))
        except (OSError, ValidationError):
            return None

    def add_note(self, note: PersonNote) -> None:
        """Leave a note for a later prompt."""
        number = len(self.notes()) + 1
        while True:
            try:
                files.write_new(self._folder / f"note-{number:04d}.json", json.dumps(asdict(note)))
            except FileExistsError:  # two at the same moment
                number += 1
                continue
            except OSError as error:
                raise _cannot_write(error) from None
            return

    def notes(self) -> list[PersonNote]:
        """All notes, the oldest first."""
        found = []
        for path in sorted(self._folder.glob("note-*.json")):
            with suppress(OSError, ValidationError):
                note = _NOTE.validate_json(files.read(path, _LARGEST))
                found.append(PersonNote(note.text, note.by, note.at, note.role, path.stem))
        return found

    def ask_to_pause(self, by: str) -> None:
        """Let the run stop before its next prompt."""
        try:
            files.write(self._folder / _PAUSE, by)
        except OSError as error:
            raise _cannot_write(error) from None

    def wants_pause(self) -> str:
        """Who wants the run to pause; empty where nobody does."""
        try:
            return files.read(self._folder / _PAUSE, _LARGEST).decode("utf-8", "replace") or "somebody"
        except OSError:
            return ""

    def clear_pause(self) -> None:
        """Forget the wish: the run has stopped, or goes on."""
        with suppress(OSError):
            files.remove(self._folder / _PAUSE)


def who() -> str:
    """The name of the person at this terminal."""
    try:
        return readable(os.environ.get("QUINTET_PERSON", "")).replace("\n", " ").strip() or getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"


def readable(text: str) -> str:
    """A text that every file and every terminal can take: no half characters, no control characters."""
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return "".join(letter for letter in text if letter in "\n\t" or unicodedata.category(letter) != "Cc")


def now() -> str:
    """The present, as the journal writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _cannot_write(error: OSError) -> RunError:
    return RunError(f"{error.filename}: cannot be written ({error.strerror})")
