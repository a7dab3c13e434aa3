"""One run on real tmux with the scripted agents: the fault, as many starts as it takes, and the judgement."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from harness.chaos.books import Books
from harness.chaos.outcome import KILLED, PASSED, Outcome
from harness.chaos.real.faults import CannotBeTried, Fault, fault_for
from harness.chaos.real.leftovers import processes_of, sockets_in
from harness.chaos.real.plan import Plan
from harness.chaos.real.scene import scene
from harness.chaos.sim.agents import is_reminder
from harness.chaos.sim.server import marker
from quintet.loop.decide.state import Status
from quintet.server.tmux.servers import is_listening
from tests.watch.scripted import Scripted, scripted

MOST_STARTS: Final = 6
END_SECONDS: Final = 300.0
"""real seconds that a start may take: far more than all its waits together"""
SETTINGS: Final = {"POLL_SECONDS": "0.05", "IDLE_GRACE_SECONDS": "1", "RESPONSE_TIMEOUT": "40", "MAX_ROUNDS": "6"}


class Stage:
    """A project, its agents' log, and the process that is under test."""

    def __init__(self, plan: Plan, project: Scripted) -> None:
        self.plan, self.project = plan, project
        self.log = project.root / "agents.jsonl"
        self.outcome = Outcome(plan.seed, plan.kind, str(plan))
        self.books = Books(project.wd)
        project.script(scene(plan, self.log))

    def logged(self, event: str) -> list[dict[str, Any]]:
        """What the agents have noted so far; the last line may still be on its way."""
        try:
            lines = self.log.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        return [one for one in map(json.loads, lines) if one["event"] == event]

    def prompts(self) -> list[str]:
        texts = [one["text"] for one in self.logged("prompt")]
        return [text for text in texts if not is_reminder(text)]

    def start(self, fault: Fault, *, first: bool) -> None:
        """One start of the command, to its end."""
        run = self.project.start("run", "--plain", prefix=fault.prefix, **SETTINGS, **fault.settings)
        if first and fault.strikes:
            _until(lambda: run.poll() is not None or len(self.prompts()) >= self.plan.step)
            time.sleep(self.plan.delay)
            fault.strike(run)
        try:
            said, _ = run.communicate(timeout=END_SECONDS)
            code = KILLED if run.returncode == -signal.SIGKILL else str(run.returncode)
        except subprocess.TimeoutExpired:
            run.kill()
            said, _ = run.communicate()
            code = "overtime"
            self.outcome.violations.append(f"a start did not end within {END_SECONDS:g} s")
        self.outcome.codes.append(code)
        self.outcome.said += [*said.splitlines(), f"-- start {len(self.outcome.codes)}: {code}"]
        if "Traceback" in said:
            self.outcome.violations.append("a traceback was shown")
        self.outcome.violations += self.books.unloadable()

    def judge(self) -> None:
        """The invariants of every run."""
        outcome, complaints = self.outcome, self.outcome.violations
        outcome.steps = len(self.prompts())
        if outcome.codes[-1] != PASSED:
            complaints.append(f"no PASS after {len(outcome.codes)} starts: {', '.join(outcome.codes)}")
        state = self.books.state()
        if outcome.passed and (state is None or state.final_status is not Status.PASS):
            complaints.append("exit code 0 without a PASS in the state file")
        complaints += self.books.lost(self._written())
        complaints += self.books.repeated(marker(text) for text in self.prompts())
        living = {
            path.name for path in self.project.root.glob("x/quintet/s/*") if not path.suffix and is_listening(path)
        }
        known = {state.session_name} if state else set[str]()
        if left := living - known:
            complaints.append(f"sessions are left running that nobody knows of: {', '.join(sorted(left))}")

    def _written(self) -> list[bytes]:
        """The responses that an agent wrote completely and did not replace itself in the same step."""
        kept: dict[tuple[str, int], bytes] = {}
        for one in self.logged("written"):
            step = len(self.prompts_of(one["role"], one["at"]))
            kept[one["role"], step] = one["text"].encode("utf-8", "surrogateescape")
        return list(kept.values())

    def prompts_of(self, role: str, before: float) -> list[str]:
        found = [one for one in self.logged("prompt") if one["role"] == role and one["at"] < before]
        return [one["text"] for one in found if not is_reminder(one["text"])]

    def leave(self, fault: Fault) -> None:
        """End everything as a user would, and see that nothing stays."""
        fault.close()
        self.project.call("stop", "--all")
        root = self.project.root
        left: dict[int, str] = {}

        def gone() -> bool:
            nonlocal left
            left = processes_of(root)
            return not left

        if not _until(gone, 10.0):
            self.outcome.violations += [f"process {pid} is left: {line[:120]}" for pid, line in left.items()]
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if names := sockets_in(root):
            self.outcome.violations.append(f"sockets are left: {', '.join(names)}")


def carry_out(plan: Plan) -> Outcome:
    """Carry out a plan and judge what came of it."""
    with scripted({}) as project:
        stage = Stage(plan, project)
        fault = fault_for(plan, project)
        try:
            fault.prepare()
        except CannotBeTried as reason:
            stage.outcome.skipped = str(reason)
            return stage.outcome
        outcome = stage.outcome
        try:
            while not outcome.passed and len(outcome.codes) < MOST_STARTS and not outcome.violations:
                if outcome.codes:
                    fault.mend()
                stage.start(fault, first=not outcome.codes)
            stage.judge()
        finally:
            stage.leave(fault)
    return outcome


def _until(condition: Callable[[], bool], seconds: float = END_SECONDS) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
