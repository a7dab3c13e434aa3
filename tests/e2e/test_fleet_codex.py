"""Real Codex in the queue: the machine that carries out two of three tasks is killed, and another one goes on."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from quintet.fleet.tasks import QueuedTask, TaskStatus
from quintet.roles import PROGRAMMER
from tests.e2e.brains import (
    ANALYST_APPROVED,
    ANALYST_SUMMARY,
    PROGRAMMER_APPROVED,
    PROGRAMMER_SUMMARY,
    TEST_PASS,
    Answer,
    RoleBrain,
    Script,
    response_path,
)
from tests.e2e.exchange import Reply, Request
from tests.e2e.project import TASK
from tests.e2e.rig import CODEX, RUN_SECONDS, rig
from tests.e2e.test_fleet import group_of, send
from tests.fleet.postgres import postgres
from tests.fleet.rig import Fleet, with_remote
from tests.watch.scripted import Scripted

pytestmark = pytest.mark.e2e_all


def script_for(answer: str) -> Script:
    """A task that passes in its first round; each step can be asked again."""
    return {
        "analyst_summary.md": [Answer(ANALYST_SUMMARY, before=("ls",))],
        "analyst_review.md": [Answer(ANALYST_APPROVED, before=("cat README.md",))],
        "programmer_summary.md": [Answer(PROGRAMMER_SUMMARY, before=(f"echo {answer} > answer.txt",))],
        "programmer_review.md": [Answer(PROGRAMMER_APPROVED, before=("cat answer.txt",))],
        "test_result.md": [Answer(TEST_PASS, before=("cat answer.txt",))],
    }


@dataclass
class TasksBrain:
    """A model for many tasks at once: the folder of the file that a prompt asks for tells whose it is."""

    by_task: dict[str, RoleBrain] = field(default_factory=dict)
    may_code: threading.Event = field(default_factory=threading.Event)

    def __call__(self, request: Request) -> Reply:
        path = response_path(request.prompt)
        if path and path.name == "programmer_summary.md" and not self.may_code.is_set():
            return Reply.say("Too late.", delay=RUN_SECONDS)
        whose = [brain for task, brain in self.by_task.items() if path and task in path.parts]
        return whose[0](request) if whose else Reply.say("Understood.")


@dataclass
class RealProject(Scripted):
    """The project of real agents instead of scripted ones."""

    given: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        return self.given


@contextmanager
def codex_fleet(brain: TasksBrain) -> Iterator[Fleet]:
    """A project with a remote, and a queue in PostgreSQL."""
    with rig(CODEX, brain) as run, postgres() as server:
        settings = {"PROVIDER": "codex", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL": "1", "POLL_SECONDS": "0.2"}
        made = with_remote(Fleet(RealProject(run.project.parent, given={**run.env, **settings}), server.url, 8.0))
        try:
            yield made
        finally:
            brain.may_code.set()
            made.end()


def test_three_tasks_pass_although_the_machine_of_two_is_killed() -> None:
    brain = TasksBrain()
    with codex_fleet(brain) as queue:
        answers = {}
        for name in ("one", "two", "three"):
            path = queue.task_file(name, TASK.replace("42", name))
            verify = f"verify_cmd=grep -qx {name} answer.txt"
            (task,) = [line for line in queue.queue("add", path, "-s", verify).splitlines() if line.startswith("the-")]
            answers[task], brain.by_task[task] = name, RoleBrain(script_for(name))
        first = queue.machine("anna", "--slots", "2")

        def two_in_the_middle() -> list[QueuedTask]:
            at_work = [one for one in queue.database.living() if one.progress.agent == PROGRAMMER.name]
            return at_work if len(at_work) == 2 else []

        killed = queue.until(two_in_the_middle, "two tasks are in the middle", RUN_SECONDS)
        send(group_of(first), signal.SIGKILL)
        brain.may_code.set()
        queue.machine("bert", "--slots", "2")
        ended = {task: queue.until_status(task, TaskStatus.PASSED, RUN_SECONDS) for task in answers}
        for before in killed:
            after = ended[before.id]
            assert after.outcome
            assert (after.takeovers, after.outcome.run) == (1, before.progress.run), "the same run went on"
        check_branches(queue, ended, answers)


def check_branches(queue: Fleet, ended: dict[str, QueuedTask], answers: dict[str, str]) -> None:
    """The remote has a branch for each task, with what it was asked for and nothing else."""
    for task, name in answers.items():
        outcome = ended[task].outcome
        assert outcome
        assert (ended[task].progress.machine, outcome.branch) == ("bert", f"quintet/{task}")
        assert queue.remote("rev-parse", outcome.branch) == outcome.commit
        assert queue.remote("diff", "--name-status", f"main..{outcome.branch}").split() == ["A", "answer.txt"]
        assert queue.remote("show", f"{outcome.branch}:answer.txt") == name
