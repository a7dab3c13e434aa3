"""The record of turns that Quintet's own programs in a pane write: lines of JSON, folded into the last turn.

The scripted agent writes one, and the host of agents that speak the Agent Client Protocol.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.actions import ActionKind, TurnActions, action, bounded
from quintet.api.status import FailureKind
from quintet.providers.base import RecordedFailure, TurnRecord
from quintet.providers.json_lines import as_object, json_object, text_in
from quintet.providers.reset_times import LATEST
from quintet.tokens import TokenCount, recorded_tokens

MOST_BYTES: Final = 64 << 20
"""that are read of a record; what has more is none"""


def read_events(record: Path, since: int = 0) -> Iterator[dict[str, Any]]:
    """The whole lines of a record after a position; none where there is no record.

    The agent can write to the folder that the record is in: no link there is followed, and only a file is read.
    """
    try:
        with files.reading(record, record.parent.parent) as file:
            if os.fstat(file.fileno()).st_size - since > MOST_BYTES:
                return
            file.seek(since)
            yield from (json_object(line) for line in file if line.endswith(b"\n"))
    except OSError:
        return


def read_turn(record: Path, since: int) -> TurnRecord | None:
    """The last turn that began after a position."""
    found: TurnRecord | None = None
    for event in read_events(record, since):
        kind = event.get("event")
        if kind == "begin":
            found = TurnRecord(ended=False, typed=found is not None)
        elif kind == "note" and found is not None and not found.ended:
            found = TurnRecord(ended=False, typed=found.typed, note=text_in(event, "text"))
        elif kind == "end" and found is not None:
            found = TurnRecord(True, text_in(event, "reply"), _failure(event), _usage(event), typed=found.typed)
    return found


def read_turn_actions(record: Path, since: int) -> TurnActions | None:
    """What was done in the last turn that began after a position."""
    found: TurnActions | None = None
    for event in read_events(record, since):
        kind, code = text_in(event, "kind"), event.get("exit_code")
        if event.get("event") == "begin":
            found = TurnActions()
        elif event.get("event") == "action" and found is not None and kind in set(ActionKind):
            done = action(ActionKind(kind), text_in(event, "text"), code if type(code) is int else None)
            found += bounded([done])
    return found


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
