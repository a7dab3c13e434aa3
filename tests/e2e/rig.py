"""A run of Quintet with its own server and real agents: a scripted model, a home and a project of its own."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.e2e import acp_agents, install
from tests.e2e.exchange import Brain
from tests.e2e.home import clean_environment, make_home
from tests.e2e.install import ensure_claude, ensure_codex, ensure_openspec
from tests.e2e.model import ScriptedModel
from tests.e2e.processes import end_all_in, living_in, signal_all
from tests.e2e.project import TASK, VERIFY, make_project
from tests.eventually import eventually, show_journals

QUINTET = (sys.executable, "-m", "quintet")
RUN_SECONDS = 600.0
"""far more than a run takes, also on a machine that is busy with other work"""
LEFT_SECONDS = 10.0
"""a process that was killed is visible for a moment longer"""
PAUSE_SECONDS = 0.03
"""between two looks, each of which reads all of /proc or asks a server"""
T = TypeVar("T")


@dataclass(frozen=True)
class Cast:
    """Which agents take part."""

    codex: str = ""
    claude: str = ""
    acp: tuple[str, ...] = ()
    """those that speak the Agent Client Protocol, by their providers' names"""
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """the `agents` section of the config file"""
    more: Mapping[str, Any] = field(default_factory=dict)
    """other sections of the config file, which win"""
    programs_of_own: tuple[Callable[[], Path], ...] = ()
    """what finds the programs that the config file defines"""

    @property
    def provider(self) -> str:
        return "codex" if self.codex else "claude_code" if self.claude else next(iter(self.acp), "")

    def programs(self) -> list[Path]:
        wanted = [ensure_codex(self.codex)] if self.codex else []
        wanted += [ensure_claude(self.claude)] if self.claude else []
        wanted += [acp_agents.AGENTS[name].ensure() for name in self.acp]
        return wanted + [ensure() for ensure in self.programs_of_own]


CODEX, OLDER_CODEX = Cast(codex=install.CODEX), Cast(codex=install.OLDER_CODEX)
CLAUDE = Cast(claude=install.CLAUDE)
BOTH = {f"codex-{CODEX.codex}": CODEX, f"claude-{CLAUDE.claude}": CLAUDE}
RELEASES = {**BOTH, f"codex-{OLDER_CODEX.codex}": OLDER_CODEX}


def together(names: Iterable[str]) -> list[Any]:
    """Return parameters of a module's fixture: one worker of pytest-xdist gets all tests of each, in order."""
    return [pytest.param(name, id=name, marks=pytest.mark.xdist_group(name)) for name in names]


each_cli = pytest.mark.parametrize("cast", BOTH.values(), ids=BOTH)
each_release = pytest.mark.parametrize("cast", RELEASES.values(), ids=RELEASES)


@dataclass(frozen=True)
class Rig:
    """All that a run needs."""

    model: ScriptedModel
    cast: Cast
    home: Path
    project: Path
    env: Mapping[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, **settings: str) -> subprocess.Popen[str]:
        """`quintet run`, as a user starts it."""
        config = self.home / "quintet.json"
        config.write_text(json.dumps({"provider": self.cast.provider, "agents": self.cast.agents, **self.cast.more}))
        given = {"WD": str(self.project), "PROMPT": TASK, "VERIFY_CMD": VERIFY}
        return self._start(["run", str(config)], self.home, {**given, **settings})

    def _start(self, words: Sequence[str], cwd: Path, settings: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*QUINTET, *words],
            env={**self.env, **settings},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, **settings: str) -> tuple[int, str]:
        """Run `quintet run` to its end; return the exit code and the output."""
        return self.finish(self.start(**settings))

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for the end of a run; return its exit code and output."""
        try:
            output, _ = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run does not end\n{self.dump()}") from None
        return process.returncode, output

    def quintet(self, *words: str, **settings: str) -> tuple[int, str]:
        """Run another command in the project to its end; return its exit code and output."""
        return self.finish(self._start(words, self.project, {"PROVIDER": self.cast.provider, **settings}))

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.project / ".tmp/quintet-state.json").read_text())
        return state

    @property
    def archive(self) -> Path:
        return self.project / ".tmp" / str(self.state["run_id"])

    def journal(self) -> list[dict[str, Any]]:
        """Return the events of the run so far; a line that is being written is left out."""
        try:
            whole, _, _ = (self.archive / "journal.jsonl").read_text().rpartition("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in whole.splitlines()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one kind."""
        return [event for event in self.journal() if event["event"] == kind]

    def sent_prompts(self) -> list[str]:
        """Return the prompts in the order in which they were sent."""
        return [path.read_text() for path in sorted((self.archive / "prompts").iterdir())]

    def living(self) -> dict[int, str]:
        """Return all processes that were started here and still run."""
        return living_in(self.home)

    def kill_everything(self) -> None:
        """Kill the run, its terminals and its agents."""

        def kill() -> bool:
            living = self.living()
            signal_all(living, signal.SIGKILL)
            return not living

        self.until(kill, "everything is killed")

    def left(self) -> dict[int, str]:
        """Return the processes that do not end by themselves."""
        end = time.monotonic() + LEFT_SECONDS
        return eventually(self.living, wanted=lambda living: not living or time.monotonic() > end)

    def until(
        self,
        look: Callable[[], T],
        what: str,
        deadline: float = RUN_SECONDS,
        process: subprocess.Popen[str] | None = None,
    ) -> T:
        """Wait until `look` returns something true; fail at once if the process that should get there has ended."""

        def look_again() -> T:
            if not (found := look()):
                assert process is None or process.poll() is None, f"{what}: it ended before: {process.communicate()[0]}"
                time.sleep(PAUSE_SECONDS)
            return found

        return eventually(look_again, what, deadline=deadline, on_failure=self.dump)

    def dump(self) -> str:
        """Return the evidence of a failure: every screen, the end of every journal, the processes."""
        place = self.project.parent
        screens = [screen for socket in sorted(place.glob("*/quintet/s/*")) for screen in _screens(socket)]
        living = [f"{pid}: {line[:300]}" for pid, line in self.living().items()]
        return "\n".join([*screens, show_journals(place), "--- processes", *living])


def _screens(socket: Path) -> Iterator[str]:
    """Return what each terminal of a tmux server shows."""
    tmux = ("tmux", "-S", str(socket))
    panes = subprocess.run([*tmux, "list-panes", "-a", "-F", "#{pane_id}"], capture_output=True, text=True, check=False)
    for pane in panes.stdout.split():
        shown = subprocess.run([*tmux, "capture-pane", "-p", "-t", pane], capture_output=True, text=True, check=False)
        yield f"--- screen {socket.name} {pane}\n{shown.stdout.strip()}"


@contextmanager
def rig(cast: Cast, brain: Brain, more: Mapping[str, str] | None = None, address: str = "127.0.0.1") -> Iterator[Rig]:
    """A project and a home of its own; when the block ends, so does everything that was started in it."""
    programs = [*cast.programs(), ensure_openspec()]
    # short, because the paths of sockets are; and not below the home, whose agents would look into it
    place = Path(tempfile.mkdtemp(prefix="q5-"))
    project = place / "project"
    with ScriptedModel(brain, address) as model:
        home = make_home(model.url, [], programs)
        env = clean_environment(home, programs) | claude_environment(model.url) | {"XDG_STATE_HOME": str(place / "x")}
        if cast.acp:
            acp_agents.prepare(home)
            env |= acp_agents.environment(model.url)
        make_project(project, env)
        made = Rig(model, cast, home, project, env | dict(more or {}))
        try:
            yield made
        finally:
            try:
                end_all_in(home)
            finally:
                for process in made.started:
                    process.kill()
                    process.communicate()
            shutil.rmtree(place)
    shutil.rmtree(home)


def claude_environment(model_url: str) -> dict[str, str]:
    """What Claude Code needs to talk to the scripted model."""
    return {
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "sk-ant-made-up-for-tests-0000000000000000000000000000",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


def texts(prompts: Sequence[str]) -> list[str]:
    """Prompts as a CLI hands them on: blanks around them are trimmed."""
    return [prompt.strip() for prompt in prompts]
