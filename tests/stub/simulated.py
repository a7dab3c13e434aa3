"""`quintet run` in the process of the test, on a simulated clock and without sockets: a run takes milliseconds.

Everything from the command line to the report is the real code. Only three things differ from `tests.stub.project`:
requests go straight to the `Stub`, agents work in simulated time, and a kill is an exception that no code catches.
"""

import heapq
import io
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NoReturn
from unittest import mock

import httpx

import quintet.__main__ as program
import quintet.cli.run
from quintet.api.client import READ_SECONDS, ApiClient
from quintet.cli.main import main
from quintet.execute import Result, RunSpec, execute
from tests.stub.project import Done, Project, new_project, smooth
from tests.stub.server import Stub, Terminal, Turn, response_path

ADDRESS: Final = "http://stub.invalid"
MOST_SECONDS: Final = 20_000.0
"""simulated seconds that one start may take: far more than all its waits together"""
KILLED: Final = -signal.SIGKILL


class Killed(BaseException):
    """The process is gone: nothing more is saved, and only context managers notice."""


class SimulatedClock:
    """A clock that advances only while the run sleeps; actions can be planned."""

    def __init__(self) -> None:
        self.time = 0.0
        self.deadline = MOST_SECONDS
        self.on_sleep: Callable[[], None] = lambda: None
        """called before the run sleeps; it may stop the run"""
        self._epoch = time.time()
        self._plan: list[tuple[float, int, Callable[[], object]]] = []
        self._number = itertools.count()

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self._epoch + self.time

    def sleep(self, seconds: float) -> None:
        assert seconds > 0, "a loop that does not let time pass"
        self.on_sleep()
        self.elapse(seconds)
        assert self.time < self.deadline, "the run should have ended long ago"

    def elapse(self, seconds: float) -> None:
        """Advance the clock and carry out what is planned until then."""
        end = self.time + seconds
        while self._plan and self._plan[0][0] <= end:
            moment, _, action = heapq.heappop(self._plan)
            self.time = max(self.time, moment)
            action()
        self.time = max(self.time, end)

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Plan an action."""
        heapq.heappush(self._plan, (self.time + seconds, next(self._number), action))


class SimulatedStub(Stub):
    """The scripted server, with agents that work in simulated time."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self.clock = clock
        self.url = ADDRESS
        self.addresses = {ADDRESS}
        """where this server is reached"""
        self._asking: dict[str, Callable[[], None]] = {}

    def play(self, terminal: Terminal, turn: Turn, number: int, message: str) -> None:
        """Plan a turn."""

        def begin() -> None:
            terminal.status = turn.seen
            self.clock.after(turn.work, write)

        def write() -> None:
            turn.act()
            path = response_path(message)
            if path and turn.raw is not None:
                path.write_bytes(turn.raw)
            elif path and turn.reply is not None:
                path.write_text(turn.reply, encoding="utf-8")
            self.clock.after(turn.rest_after, rest)
            self.after_file(terminal.role, number)

        def rest() -> None:
            terminal.screen = turn.screen
            terminal.status = turn.then

        if turn.asks:
            terminal.status = "waiting_user_answer"
            self._asking[terminal.id] = begin
        else:
            begin()

    def answer(self, terminal: Terminal) -> None:
        """Let an agent continue that has asked for permission."""
        self._asking.pop(terminal.id, lambda: None)()


class StubTransport(httpx.BaseTransport):
    """Carries requests to a stub without a socket."""

    def __init__(self, stub: SimulatedStub) -> None:
        self._stub = stub

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        stub, method, path = self._stub, request.method, request.url.raw_path.decode().partition("?")[0]
        params = dict(request.url.params)
        if body := request.read():
            params |= json.loads(body)
        fault = stub.fault_for(method, path)
        if not fault:
            code, answer = stub.handle(method, path, params)
            return httpx.Response(code, json=answer)
        if fault.takes_effect:
            stub.handle(method, path, params)
        if fault.after:
            stub.clock.elapse(min(fault.after, READ_SECONDS))
        if fault.after >= READ_SECONDS:
            raise httpx.ReadTimeout("timed out", request=request)
        if not fault.code:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.", request=request)
        return httpx.Response(fault.code, content=fault.body)


@dataclass
class SimulatedProject(Project):
    """A project whose runs happen in this process."""

    stub: SimulatedStub
    clock: SimulatedClock = field(default_factory=SimulatedClock)

    def run(self, *arguments: str, **options: Any) -> Done:
        """Run the command to its end, in the directory `cwd`; a setting of None is left out of the environment."""
        cwd, settings = options.pop("cwd", self.wd), options
        self.clock.deadline = self.clock.time + MOST_SECONDS
        env = {name: value for name, value in (self.env | settings).items() if value is not None}
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with ExitStack() as changed:
            changed.enter_context(mock.patch.dict(os.environ, env, clear=True))
            changed.enter_context(mock.patch.object(sys, "argv", [program.__file__, "run", *arguments]))
            changed.enter_context(mock.patch.object(quintet.cli.run, "execute", self._execute))
            changed.enter_context(chdir(cwd))
            changed.enter_context(redirect_stdout(out))
            changed.enter_context(redirect_stderr(err))
            code = _exit_code()
        return Done(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))

    def start(self, *arguments: str, **options: Any) -> NoReturn:
        """Refuse: a process could not reach the stub."""
        raise AssertionError(f"a simulated project starts no process: {arguments}, {options}")

    def stop_at(self, prompts: int, number: signal.Signals = signal.SIGKILL, *arguments: str, **settings: Any) -> Done:
        """Run until so many prompts have arrived, and end the run by a signal while that agent is at work."""
        return self.stop_when(lambda: len(self.stub.prompts) >= prompts, number, *arguments, **settings)

    def stop_when(
        self, condition: Callable[[], object], number: signal.Signals, *arguments: str, **settings: Any
    ) -> Done:
        """Run until a condition holds while the run waits, and end the run by a signal."""

        def stop() -> None:
            if condition():
                self.clock.on_sleep = lambda: None
                kill() if number is signal.SIGKILL else os.kill(os.getpid(), number)

        self.clock.on_sleep = stop
        done = self.run(*arguments, **settings)
        assert done.code == (KILLED if number is signal.SIGKILL else 128 + number), done.text
        return done

    def _execute(self, spec: RunSpec) -> Result:
        return execute(replace(spec, clock=self.clock, connect=self._connect))

    def _connect(self, api: str, sessions: Sequence[str], warn: Callable[[str], None]) -> ApiClient:  # noqa: ARG002
        transport = StubTransport(self.stub) if api in self.stub.addresses else None
        return ApiClient(api, str(self.wd), transport=transport)


def kill(*_: object, **__: object) -> NoReturn:
    """End the run as SIGKILL does."""
    raise Killed


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    except Killed:
        return KILLED
    raise AssertionError("the command did not exit")


@contextmanager
def simulated_project(folder: Path, name: str = "project") -> Iterator[SimulatedProject]:
    """A project below a folder, whose runs and agents live in this process."""
    clock = SimulatedClock()
    stub = SimulatedStub(clock)
    stub.script = smooth()
    wd, home, _, env = new_project(folder, name, stub)
    yield SimulatedProject(wd, home, stub, env, clock=clock)
