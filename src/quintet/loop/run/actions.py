"""The actions of a turn, as the terminal server reads them from the agent's own record."""

from dataclasses import dataclass, field
from typing import Final

from quintet.actions import TurnActions
from quintet.api.backend import Backend
from quintet.errors import ApiError
from quintet.loop.run.clock import Clock

LAG_SECONDS: Final = 3.0
"""how long after the end of a turn its record may go on growing"""
LOOK_SECONDS: Final = 0.1


@dataclass
class ActionLedger:
    """Adds up a turn. One that needed a reminder has several records, of which a server tells only the last."""

    clock: Clock
    _earlier: list[TurnActions | None] = field(default_factory=list)

    def note(self, backend: Backend, terminal: str) -> None:
        """Remember what was done in a turn that goes on with another prompt."""
        self._earlier.append(read_actions(backend, terminal))

    def close(self, backend: Backend, terminal: str, *, wait: bool) -> TurnActions | None:
        """What was done in all; None where that is not known.

        With `wait` a record that tells of nothing is looked at for a while: some are written after the end of a turn.
        """
        self.note(backend, terminal)
        parts, self._earlier = self._earlier, []
        deadline = self.clock.now() + (LAG_SECONDS if wait else 0.0)
        while not any(part is None or part.items for part in parts) and self.clock.now() < deadline:
            self.clock.sleep(LOOK_SECONDS)
            parts[-1] = read_actions(backend, terminal)
        known = [part for part in parts if part is not None]
        total = sum(known, TurnActions())
        return total if total.items or len(known) == len(parts) else None


def read_actions(backend: Backend, terminal: str) -> TurnActions | None:
    """What was done in a terminal's last turn; None where the server or the agent does not tell."""
    try:
        return backend.get_terminal(terminal).actions
    except ApiError:
        return None
