"""Checks of a run without its agents: the quick way to let a program under test attack them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quintet.config import Settings
from quintet.layout import STATE_FILE
from quintet.loop.decide.checks import Check, CheckOutcome
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import Verify
from quintet.loop.journal import Warned
from quintet.loop.run.checks import run_checks
from quintet.loop.run.protection import Protection
from tests.sandbox.need import need_bubblewrap
from tests.stub.fake import HeardStore

CHECK = 'test "$(cat answer.txt)" = 42\n'
"""what the programmer has not done"""


@dataclass
class Checking:
    """A project whose protected files were kept, and whose checks can be run."""

    wd: Path
    settings: Settings
    store: HeardStore
    protection: Protection

    def run(self, *scripts: str) -> list[CheckOutcome]:
        """Run verify blocks as after a PASS of the tester."""
        checks = tuple(Check(f"verify block {number}", script, True) for number, script in enumerate(scripts, 1))
        return list(run_checks(Verify(1, checks), self.settings, self.store, self.protection).results)

    def passes(self, *scripts: str) -> bool:
        """Whether the round would be a PASS."""
        return self.run(*scripts)[-1].passed

    @property
    def warnings(self) -> str:
        return "\n".join(event.text for event in self.store.events if isinstance(event, Warned))

    def again(self) -> "Checking":
        """The same run as the next process finds it."""
        return replace(self, protection=Protection(self.settings, self.store))


def checking(wd: Path, sandbox: str, files: Mapping[str, str], **more: object) -> Checking:
    """A project with some files, at the start of its run; `check.sh` asks for what nobody has done."""
    if sandbox == "on":
        need_bubblewrap()
    for name, text in {"check.sh": CHECK, "answer.txt": "41\n", **files}.items():
        path = wd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    given: dict[str, object] = {"protect": ("check.sh",), "response_timeout": 60.0, **more}
    settings = Settings(wd=wd, state_file=wd / STATE_FILE, sandbox=sandbox, **given)  # type: ignore[arg-type]
    store = HeardStore(settings, State(run_id="run"))
    protection = Protection(settings, store)
    protection.start()
    return Checking(wd, settings, store, protection)
