"""A run whose agents do what an attacker would, in the sandbox, and the user's files that it must not reach."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.sandbox.need import need_bubblewrap
from tests.stub.replies import ANALYST_APPROVED, ANALYST_SUMMARY, PASS, PROGRAMMER_APPROVED
from tests.watch.scripted import LONG_SUMMARY, Scripted, scripted

REPLIES: Mapping[str, str] = {
    "analyst": ANALYST_SUMMARY,
    "peer_analyst": ANALYST_APPROVED,
    "programmer": LONG_SUMMARY,
    "peer_programmer": PROGRAMMER_APPROVED,
    "tester": PASS,
}
"""what each role says in a run that passes in its first round"""


def acts(orders: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """One round that passes, in which each role first runs its shell commands."""
    return {
        role: [[*({"run": command} for command in (*orders.get(role, ()), "ls")), {"reply": reply}]]
        for role, reply in REPLIES.items()
    }


@dataclass
class Attack:
    """A project, its user's home, and how the run ended in which the roles were attackers."""

    run: Scripted
    code: int = -1
    said: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.run.root / "home"

    def carry_out(self, orders: Mapping[str, Sequence[str]], *words: str, **settings: str) -> "Attack":
        """Carry out a run in which each role runs its shell commands before it replies."""
        self.run.script(acts(orders))
        shown = str(self.run.root / "scenario.json")
        known = {"SANDBOX": "on", "SANDBOX_SHOW": shown, "CLEANUP_ON_EXIT": "1", **self.settings, **settings}
        self.code, self.said = self.run.call("run", "--plain", *words, **known)
        return self

    def events(self, name: str) -> list[dict[str, Any]]:
        """All events of that name in the journal."""
        return [event for event in self.run.journal if event["event"] == name]

    @property
    def evidence(self) -> str:
        """What to print where an attack got somewhere."""
        told = [json.dumps(event) for event in self.run.journal if event["event"] in ("warned", "guard_violation")]
        return "\n".join([self.said, *told])


@contextmanager
def attack(**settings: str) -> Iterator[Attack]:
    """A git project with one commit in the home of a user, and agents that can be told what to do."""
    need_bubblewrap()
    with scripted(acts({})) as run:
        yield Attack(run, settings=settings)
