"""Writes the record of a conversation: a line of JSON for each event, private, whole lines only."""

import json
from pathlib import Path
from typing import Any

from quintet import files
from quintet.providers.acp.opening import AcpSession
from quintet.providers.acp.tools import Done
from quintet.providers.acp.turn import TurnEnd


class RecordWriter:
    """The record in a terminal's folder (see `providers.turn_events` for its reader)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def session(self, session: AcpSession, at: float) -> None:
        self._write("session", id=session.id, agent=session.agent, loaded=session.loaded, at=at)

    def begin(self, turn: int, by: str, at: float) -> None:
        self._write("begin", turn=turn, by=by, at=at)

    def message(self, text: str) -> None:
        self._write("message", text=text)

    def action(self, done: Done) -> None:
        self._write("action", kind=done.kind, text=done.text, exit_code=done.exit_code)

    def permission(self, text: str, answer: str) -> None:
        self._write("permission", text=text, answer=answer)

    def note(self, text: str) -> None:
        self._write("note", text=text)

    def warning(self, text: str) -> None:
        self._write("warning", text=text)

    def end(self, turn: int, end: TurnEnd, at: float) -> None:
        self._write(
            "end", turn=turn, stop=end.stop, reply=end.reply, usage=end.usage.as_json(), failed=end.failed, at=at
        )

    def _write(self, event: str, **values: Any) -> None:
        files.append_line(self._path, json.dumps({"event": event, **values}) + "\n")
