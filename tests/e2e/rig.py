"""A run of Quintet with its own server and real agents: a scripted model, a home and a project of its own."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e import acp_agents
from tests.e2e.exchange import Brain
from tests.e2e.home import clean_environment, make_home
from tests.e2e.install import ensure_claude, ensure_codex, ensure_openspec
from tests.e2e.model import ScriptedModel
from tests.e2e.processes import end_all_in, living_in
from tests.e2e.project import TASK, VERIFY, make_project

QUINTET = (sys.executable, "-m", "quintet")
RUN_SECONDS = 240.0
LEFT_SECONDS = 3.0


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
        process = subprocess.Popen(
            [*QUINTET, "run", str(config)],
            env={**self.env, **given, **settings},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, **settings: str) -> tuple[int, str]:
        """A run to its end: the exit code and what it said."""
        process = self.start(**settings)
        said, _ = process.communicate(timeout=RUN_SECONDS)
        return process.returncode, said

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.project / ".tmp/quintet-state.json").read_text())
        return state

    @property
    def archive(self) -> Path:
        return self.project / ".tmp" / str(self.state["run_id"])

    def journal(self) -> list[dict[str, Any]]:
        """The events of the run."""
        return [json.loads(line) for line in (self.archive / "journal.jsonl").read_text().splitlines()]

    def sent_prompts(self) -> list[str]:
        """What was sent, in order."""
        return [path.read_text() for path in sorted((self.archive / "prompts").iterdir())]

    def living(self) -> dict[int, str]:
        """What still runs of all that was started here."""
        return living_in(self.home)

    def left(self) -> dict[int, str]:
        """What goes on running: one that was just killed can be seen for a moment longer."""
        deadline = time.monotonic() + LEFT_SECONDS
        while (found := self.living()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


@contextmanager
def rig(cast: Cast, brain: Brain, more: Mapping[str, str] | None = None) -> Iterator[Rig]:
    """A project and a home of its own; when the block ends, so does everything that was started in it."""
    programs = [*cast.programs(), ensure_openspec()]
    # short, because the paths of sockets are; and not below the home, whose agents would look into it
    place = Path(tempfile.mkdtemp(prefix="q5-"))
    project = place / "project"
    with ScriptedModel(brain) as model:
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
