"""A project directory, a scripted server and the real command `quintet run` as a process of its own."""

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from quintet.loop.decide.state import State, TerminalRef
from quintet.loop.record.state_file import save_state
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER, Phase, Role
from tests.eventually import eventually, show_journals, show_processes
from tests.stub.preloaded import start
from tests.stub.replies import FAIL, PASS, SMOOTH, TASK
from tests.stub.server import Stub, Turn, serving

DEADLINE: Final = 30.0
"""seconds that anything may take before a test gives up; nothing is expected to come near"""
WORK: Final = 0.03
T = TypeVar("T")


_open: list["Project"] = []
"""the projects of the test that runs now"""


def until(condition: Callable[[], T], what: str = "the condition") -> T:
    """Wait for a condition, and return its value; on failure show the journals and processes of open projects."""
    return eventually(condition, what, deadline=DEADLINE, on_failure=_show_open_projects)


def _show_open_projects() -> str:
    journals = [show_journals(project.wd) for project in _open]
    return "\n".join([*journals, show_processes(str(project.wd) for project in _open), *_show_own_processes()])


def _show_own_processes() -> list[str]:
    processes = [process for project in _open for process in project.started]
    return [f"{process.pid} ({process.poll()}): {process.args!r}" for process in processes]


def turns(*replies: str, **options: Any) -> list[Turn]:
    return [Turn(reply, work=WORK, **options) for reply in replies]


def smooth() -> dict[Role, list[Turn]]:
    """Every agent does at once what is asked of it."""
    return {role: turns(*replies) for role, replies in SMOOTH.items()}


def fail_then_pass() -> dict[Role, list[Turn]]:
    """One REVISE, then a first test that fails and a second that passes: ten prompts."""
    revise = "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- name the file\n"
    return smooth() | {PEER_ANALYST: turns(revise, *SMOOTH[PEER_ANALYST]), TESTER: turns(FAIL, PASS)}


STEPS_OF_FAIL_THEN_PASS: Final = 10


@dataclass(frozen=True)
class Done:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class Project:
    """Runs are started with a clean environment; whatever is still alive at the end is ended by its id."""

    wd: Path
    home: Path
    stub: Stub
    env: dict[str, str] = field(default_factory=dict)
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    @property
    def state_file(self) -> Path:
        return self.wd / ".tmp" / "quintet-state.json"

    @property
    def state(self) -> dict[str, Any]:
        document = json.loads(self.state_file.read_text(encoding="utf-8"))
        assert isinstance(document, dict)
        return document

    def saved_run(self, **fields: Any) -> None:
        """A run that was stopped before its programmer got a prompt, with its terminals on the server."""
        terminals = {}
        for role in ROLES:
            path = "/sessions" if role is ANALYST else "/sessions/stub-session/terminals"
            _, shown = self.stub.handle("POST", path, {"agent_profile": role.profile, "provider": "codex"})
            terminals[role.name] = TerminalRef(shown["id"], "codex")
        state = State(
            api=self.stub.url,
            provider="codex",
            wd=str(self.wd),
            prompt=TASK,
            current_phase=Phase.PROGRAMMER,
            session_name="stub-session",
            terminals=terminals,
            run_id="20260101-000000-abcdef",
            sequence=2,
        )
        outputs = {ANALYST.output: SMOOTH[ANALYST][0], PEER_ANALYST.output: SMOOTH[PEER_ANALYST][0]}
        save_state(replace(state, outputs=state.outputs | outputs), self.state_file)
        self.change_state(**fields)

    @property
    def records(self) -> Path:
        """Where runs keep what they go by."""
        return self.home / ".local/state/quintet/records"

    def change_state(self, **fields: Any) -> None:
        """Make it the state of a run that came from elsewhere, and change it."""
        shutil.rmtree(self.records, ignore_errors=True)
        self.state_file.write_text(json.dumps(self.state | fields), encoding="utf-8")

    @property
    def archive(self) -> Path:
        """The folder of the run that the state file tells of."""
        return self.wd / ".tmp" / str(self.state["run_id"])

    @property
    def archived(self) -> list[str]:
        """The names of the replies in the archive."""
        return sorted(path.name for path in self.archive.glob("[0-9]*.md"))

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        lines = (self.archive / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == (kind or event["event"])]

    @property
    def roles(self) -> list[str]:
        """Who was asked, in order."""
        return [role.name for role, _ in self.stub.prompts]

    def response_file(self, role: Role) -> Path:
        return self.wd / ".tmp" / "agent-responses" / role.response_file

    def start(
        self, *arguments: str, prefix: Sequence[str] = (), cwd: Path | None = None, **settings: str | None
    ) -> "subprocess.Popen[str]":
        """Start a run; a setting of None is left out of the environment."""
        values: Mapping[str, str | None] = self.env | settings
        env = {name: value for name, value in values.items() if value is not None}
        process = start(["run", *arguments], env, cwd or self.wd, prefix=prefix)
        self.started.append(process)
        return process

    def run(self, *arguments: str, **options: Any) -> Done:
        return finish(self.start(*arguments, **options))

    def prompt_number(self, number: int) -> None:
        """Wait until so many prompts have arrived."""
        until(lambda: len(self.stub.prompts) >= number, f"prompt {number}")

    def normalised(self) -> list[tuple[str, str]]:
        """The prompts without what differs from run to run."""
        return [(role.name, _normal(text, self.wd)) for role, text in self.stub.prompts]


def _normal(text: str, wd: Path) -> str:
    return re.sub(r"QUINTET_END_\w+", "MARKER", text.replace(str(wd), "WD"))


def finish(process: "subprocess.Popen[str]") -> Done:
    out, err = process.communicate(timeout=2 * DEADLINE)
    return Done(process.returncode, out, err)


def killed(process: "subprocess.Popen[str]") -> None:
    """Wait for the end of a process that got SIGKILL."""
    process.communicate(timeout=DEADLINE)
    assert process.returncode == -9


def new_project(folder: Path, name: str, stub: Stub) -> tuple[Path, Path, Stub, dict[str, str]]:
    """Make the directories of a project; return them with the server and the environment of its runs."""
    wd, home = folder / name, folder / "home"
    wd.mkdir()
    home.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "API": stub.url,
        "WD": str(wd),
        "PROMPT": TASK,
        "POLL_SECONDS": "0.05",
        "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1",
    }
    return wd, home, stub, env


@contextmanager
def project_in(folder: Path, name: str = "project") -> Iterator[Project]:
    """A project below a folder, with a server whose agents do at once what is asked of them."""
    stub = Stub()
    stub.script = smooth()
    with serving(stub):
        project = Project(*new_project(folder, name, stub))
        _open.append(project)
        try:
            yield project
        finally:
            _open.remove(project)
            for process in project.started:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                process.communicate()


ONE_PASS: Final = ["analyst", "peer_analyst", "programmer", "peer_programmer", "tester"]
RETRY: Final = [PROGRAMMER.name, PEER_PROGRAMMER.name, TESTER.name]
