"""One simulated run: the real driver and flow between a simulated server, clock and disk, under a plan of faults."""

import os
import shutil
import subprocess
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

from harness.chaos.books import STATE, Books
from harness.chaos.outcome import KILLED, PASSED, Outcome
from harness.chaos.sim import plan as kinds
from harness.chaos.sim.clock import Overtime, SimulatedClock
from harness.chaos.sim.disk import Disk
from harness.chaos.sim.moments import Killed, Moments
from harness.chaos.sim.plan import Fault, Plan
from harness.chaos.sim.server import SimulatedServer, SimulatedTransport, full_name
from quintet import git
from quintet.api.client import ApiClient
from quintet.config import Settings
from quintet.errors import QuintetError
from quintet.loop.decide.state import Status
from quintet.loop.run.driver import Driver
from quintet.roles import ROLES, TESTER, Role
from tests.stub.replies import TASK

SHARED_MEMORY: Final = Path("/dev/shm")
MOST_STARTS: Final = 8
RUN_SECONDS: Final = 12_000.0
"""simulated seconds that one start may take: far more than all its waits together"""
AWAY_SECONDS: Final = 40.0
FOLDERS: Final = (".tmp", ".tmp/agent-responses", "")
NEW_RUN: Final = "RESUME=0"
CODE: Final = "main.c"
AS_IT_WAS: Final = "as it was\n"
USER: Final = ("-c", "user.name=user", "-c", "user.email=user@localhost", "-c", "commit.gpgSign=false")


class World:
    """A project with everything around it."""

    def __init__(self, plan: Plan, root: Path) -> None:
        self.plan = plan
        self.wd = root / "project"
        self.wd.mkdir()
        self.random = Random(plan.seed)  # noqa: S311
        self.moments = Moments()
        self.clock = SimulatedClock(self.moments)
        self.disk = Disk(self.moments, self.wd)
        self.server = SimulatedServer(plan.own, plan.story, self.random, self.moments, self.clock, self.disk)
        self.books = Books(self.wd)
        self.truncate = False
        self.resume: bool | None = None
        self.edits: dict[str, int] = {}
        """how often each role has edited the code although it may not"""
        if plan.kind == kinds.GUARDED:
            self._guard(root)

    def _guard(self, root: Path) -> None:
        """Make the project a repository, and let whoever judges edit the code in its first turn."""
        (self.wd / CODE).write_text(AS_IT_WAS)
        for words in (("init", "--quiet"), ("add", "--all"), (*USER, "commit", "--quiet", "--message", "first")):
            subprocess.run(["git", *words], cwd=self.wd, check=True, capture_output=True)
        self.disk.root = str(root)
        self.server.misdeed = self._edit

    def _edit(self, role: Role, turn: int) -> None:
        if turn == 1 and not role.may_commit:
            self.edits[role.name] = self.edits.get(role.name, 0) + 1
            (self.wd / CODE).write_text(f"edited by {role}\n")

    @property
    def settings(self) -> Settings:
        return Settings(
            wd=self.wd,
            state_file=self.wd / STATE,
            prompt=TASK,
            api="" if self.plan.embedded else "http://simulated",
            poll_seconds=1.0,
            idle_grace_seconds=5.0,
            response_timeout=120.0,
            min_review_cycles_before_approval=1,
            max_rounds=6,
            cleanup_on_exit=self.plan.cleanup,
            auto_accept_permissions=self.plan.accept,
            resume=self.resume,
            guard="restore" if self.plan.kind == kinds.GUARDED else "off",
        )

    def connect(self, api: str, sessions: Sequence[str], warn: Callable[[str], None]) -> ApiClient:  # noqa: ARG002
        """Our own server inside a run serves only the sessions of its states and those that are created through it."""
        only = None if api else {full_name(session) for session in sessions}
        return ApiClient(api or "http://embedded", str(self.wd), transport=SimulatedTransport(self.server, only))

    def arm(self, fault: Fault, moments: int, turns: int) -> None:
        """Plan a fault for its moment."""
        if fault.kind.startswith(kinds.AGENT):
            self.server.manners[1 + int(fault.at * turns)] = fault.kind.removeprefix(kinds.AGENT)
            return
        number = 1 + int(fault.at * moments)
        while number in self.moments.planned:
            number += 1
        self.moments.planned[number] = lambda: self._strike(fault)

    def _strike(self, fault: Fault) -> None:
        match fault.kind:
            case kinds.KILLED:
                self.moments.kill()
            case kinds.TRUNCATED:
                self.moments.kill()
                self.truncate = True
            case kinds.SERVER_LOST:
                self.server.down_until = self.clock.now() + AWAY_SECONDS * fault.size
            case kinds.GONE:
                self.server.lose_terminals(forget=fault.size > 0.5)
            case kinds.CRASHED:
                if living := sorted(self.server.living):
                    self.server.agents[living[int(fault.size * len(living))]].end("it was ended by signal 9")
            case kinds.FULL:
                self.disk.room = int(fault.size * 12_000)
            case kinds.CLOSED:
                self.disk.closed = str(self.wd / FOLDERS[int(fault.size * len(FOLDERS))])
            case _:
                self.server.api_fault = fault.kind.removeprefix(kinds.API)
                self.server.faulty_requests = 1 + int(fault.size * 5)

    def start(self, outcome: Outcome) -> None:
        """One start of the command, to its end."""
        self.clock.deadline = self.clock.now() + RUN_SECONDS
        driver = Driver(self.settings, self.connect, [lambda event: outcome.said.append(repr(event))], self.clock)
        try:
            with self._surroundings(), self.disk.installed(), self.moments.of_a_process():
                code = str(driver.run().exit_code)
        except Killed:
            code = KILLED
        except QuintetError as error:
            code = "error"
            outcome.said.append(f"quintet: {error}")
        except Overtime as error:
            code = "overtime"
            outcome.violations.append(str(error))
        except Exception:  # noqa: BLE001 - whatever else comes out is what is looked for
            code = "traceback"
            outcome.violations.append(traceback.format_exc())
        outcome.codes.append(code)
        outcome.said.append(f"-- start {len(outcome.codes)}: {code}")
        outcome.violations += self.books.unloadable()

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """A state directory of its own, and every call of git as a moment at which the process can die."""
        before = git.run

        def run(*words: Any, **more: Any) -> git.GitResult:
            if self.plan.kind == kinds.GUARDED:
                self.moments.pass_by(f"git {words[1]}")
            return before(*words, **more)

        with (
            mock.patch.dict(os.environ, {"XDG_STATE_HOME": str(self.wd.parent / "x")}),
            mock.patch.object(git, "run", run),
        ):
            yield

    def recover(self, outcome: Outcome) -> None:
        """What happens between two starts: somebody makes room, the hung go on, and time passes."""
        self.disk.mend()
        self.server.wake_the_hung()
        self.clock.elapse(self.random.choice((0.5, 30.0)))
        if self.truncate and self.books.state_file.exists():
            self.truncate, self.server.state_torn = False, True
            text = self.books.state_file.read_bytes()
            self.books.state_file.write_bytes(text[: int(self.random.random() * len(text))])
        failed = [said for said in outcome.said if "the agent has failed or is gone" in said]
        lost = NEW_RUN in " ".join(outcome.said[-3:]) or len(failed) > 1
        # what is lost on another server stays lost: its user begins anew, as the message says
        self.resume = False if lost and not self.plan.own else None


@cache
def undisturbed(story: str, server: str, cleanup: bool, kind: str = "") -> tuple[int, int]:
    """How often a run without faults touches its world, and how many turns its agents have."""
    outcome, world = _run(Plan(0, kind, (), story, server, cleanup, accept=True))
    assert outcome.codes == [PASSED], outcome.tell()
    return world.moments.count, world.server.turns


def simulate(plan: Plan) -> Outcome:
    """Carry out a plan and judge what came of it."""
    guarded = plan.kind if plan.kind == kinds.GUARDED else ""
    moments, turns = undisturbed(plan.story, plan.server, plan.cleanup, guarded)

    def arm(world: World) -> None:
        for fault in plan.faults:
            world.arm(fault, moments, turns)

    return _run(plan, arm)[0]


def _run(plan: Plan, arm: Callable[[World], None] = lambda _: None) -> tuple[Outcome, World]:
    root = Path(tempfile.mkdtemp(prefix="qc", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))
    try:
        world = World(plan, root)
        outcome = Outcome(plan.seed, plan.kind, str(plan))
        arm(world)
        while not outcome.passed and len(outcome.codes) < MOST_STARTS and not outcome.violations:
            if outcome.codes:
                world.recover(outcome)
            world.start(outcome)
        _judge(world, outcome)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return outcome, world


def _unguarded(world: World) -> list[str]:
    """What an agent has edited is as it was, and nobody's verdict on an edited project was the last word."""
    if not world.edits:
        return []
    text = (world.wd / CODE).read_text()
    complaints = [f"the code is not as it was: {text!r}"] if text != AS_IT_WAS else []
    asked = Counter(arrival.role for arrival in world.server.arrivals)
    judges = [role.name for role in ROLES if role.reviews or role is TESTER]
    return complaints + [f"{name} edited the code and was not asked again" for name in judges if asked[name] < 2]


def _judge(world: World, outcome: Outcome) -> None:
    state, books, server = world.books.state(), world.books, world.server
    outcome.steps = len(server.arrivals)
    complaints = outcome.violations
    if not outcome.passed:
        complaints.append(f"no PASS after {len(outcome.codes)} starts: {', '.join(outcome.codes)}")
    elif state is None or state.final_status is not Status.PASS:
        complaints.append("exit code 0 without a PASS in the state file")
    complaints += books.lost(server.written)
    complaints += _unguarded(world)
    complaints += books.repeated(arrival.key for arrival in server.arrivals)
    known = {terminal.id for terminal in state.terminals.values()} if state and not world.plan.cleanup else set[str]()
    if left := server.living - server.unheard_of(books.terminals()) - known - books.left_behind():
        complaints.append(f"terminals are left running that nobody knows of: {', '.join(sorted(left))}")
