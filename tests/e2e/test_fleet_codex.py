"""Real Codex and a queue in PostgreSQL: the machine that carries out a task is killed, and another one continues."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from quintet.fleet.tasks import TaskStatus
from tests.e2e.brains import (
    ANALYST_APPROVED,
    ANALYST_SUMMARY,
    PROGRAMMER_APPROVED,
    PROGRAMMER_SUMMARY,
    TEST_PASS,
    Answer,
    RoleBrain,
    Script,
)
from tests.e2e.project import TASK, VERIFY
from tests.e2e.rig import CODEX, RUN_SECONDS, rig
from tests.e2e.test_fleet import group_of, send
from tests.fleet.postgres import postgres
from tests.fleet.rig import Fleet, with_remote
from tests.watch.scripted import Scripted

pytestmark = pytest.mark.e2e

RIGHT = Answer(PROGRAMMER_SUMMARY, before=("echo 42 > answer.txt",))
SCRIPT: Script = {
    "analyst_summary.md": [Answer(ANALYST_SUMMARY, before=("ls",))],
    "analyst_review.md": [Answer(ANALYST_APPROVED, before=("cat README.md",))],
    "programmer_summary.md": [Answer(RIGHT.text, RIGHT.before, delay=2 * RUN_SECONDS), RIGHT],
    "programmer_review.md": [Answer(PROGRAMMER_APPROVED, before=("cat answer.txt",))],
    "test_result.md": [Answer(TEST_PASS, before=("cat answer.txt",))],
}
"""It passes in its first round; the programmer's first turn lasts for ever."""


@dataclass
class RealProject(Scripted):
    """The project of real agents instead of scripted ones."""

    given: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        return self.given


@contextmanager
def codex_fleet(brain: RoleBrain) -> Iterator[Fleet]:
    """Make a project with a remote, and a queue in PostgreSQL."""
    with rig(CODEX, brain) as run, postgres() as server:
        settings = {"PROVIDER": "codex", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1", "POLL_SECONDS": "0.2"}
        made = with_remote(Fleet(RealProject(run.project.parent, given={**run.env, **settings}), server.url, 8.0))
        try:
            yield made
        finally:
            made.end()


def test_a_task_passes_although_its_machine_is_killed() -> None:
    brain = RoleBrain(SCRIPT)
    with codex_fleet(brain) as queue:
        added = queue.queue("add", queue.task_file("one", TASK), "-s", f"verify_cmd={VERIFY}").splitlines()
        (task,) = [line for line in added if line.startswith("the-")]
        first = queue.machine("anna")
        queue.until(lambda: brain.asked["programmer_summary.md"], "the programmer works", RUN_SECONDS)
        run = queue.task(task).progress.run
        send(group_of(first), signal.SIGKILL)
        brain.forget_turns()
        queue.machine("bert")
        ended = queue.until_status(task, TaskStatus.PASSED, RUN_SECONDS)
        assert ended.outcome
        assert (ended.takeovers, ended.outcome.run) == (1, run), "the same run continued"
        assert (ended.progress.machine, ended.outcome.branch) == ("bert", f"quintet/{task}")
        assert queue.remote("rev-parse", ended.outcome.branch) == ended.outcome.commit
        assert queue.remote("diff", "--name-status", f"main..{ended.outcome.branch}").split() == ["A", "answer.txt"]
        assert queue.remote("show", f"{ended.outcome.branch}:answer.txt") == "42"
