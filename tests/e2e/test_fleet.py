"""Workers on several machines with a real PostgreSQL and a real remote: killed, frozen, cut off."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import sqlalchemy as sa

from quintet.fleet.choosing import Worker
from quintet.fleet.database import Database
from quintet.fleet.reading import open_to_read
from quintet.fleet.records import read_records
from quintet.fleet.tasks import QueuedTask, TaskStatus
from quintet.roles import PEER_ANALYST, PROGRAMMER
from tests.fleet.postgres import Postgres, postgres
from tests.fleet.rig import Fleet, children_in
from tests.loop.run.test_hand_over import PROGRAM, noted
from tests.watch.scripted import DEADLINE

pytestmark = pytest.mark.e2e_all


def test_machines_that_start_at_once_make_the_tables_once() -> None:
    code = "import sys; from quintet.fleet.database import Database; Database(sys.argv[1]).close()"
    with postgres() as fresh:
        starting = [subprocess.Popen([sys.executable, "-c", code, fresh.url]) for _ in range(4)]
        try:
            assert [process.wait(timeout=DEADLINE) for process in starting] == [0, 0, 0, 0]
        finally:
            for process in starting:
                process.kill()
                process.wait()
        with open_to_read(fresh.url, make=False) as reader:
            assert reader.tasks() == []


def until_agent(queue: Fleet, task: str, role: str = PEER_ANALYST.name) -> QueuedTask:
    """Wait until an agent is at work."""
    queue.until(lambda: queue.task(task).progress.agent == role, f"{role} at work")
    return queue.task(task)


def until_checkpoint(queue: Fleet, task: str, role: str = PEER_ANALYST.name) -> str:
    """Wait until an agent is at work and the queue has recorded a checkpoint with an earlier reply; the run."""
    run = until_agent(queue, task, role).progress.run
    repository = queue.database.spec(task).repository

    def is_recorded() -> bool:
        found, journal = read_records(repository, queue.task(task).checkpoint)
        return found == run and b'"reply_taken"' in journal

    queue.until(is_recorded, "the queue has recorded a checkpoint")
    return run


def group_of(worker: "subprocess.Popen[str]") -> list[int]:
    """A worker with its slots and runs, but not the terminals, nor what serves a push on the remote's machine."""
    words = ["ps", "-e", "-o", "pid=,ppid=,args="]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    own = [line.split(maxsplit=2) for line in found if "receive-pack" not in line]
    parents = {int(pid): int(parent) for pid, parent, *_ in own}
    pids = [worker.pid]
    for pid in pids:
        pids += [child for child, parent in parents.items() if parent == pid]
    return pids


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # git and its like come and go
            os.kill(pid, number)


def check_passed(queue: Fleet, task: str, run: str = "") -> QueuedTask:
    """The task has passed: its branch is in the remote with what it should have, and no checkpoint is left."""
    ended = queue.until_status(task, TaskStatus.PASSED)
    assert ended.outcome
    assert queue.remote("rev-parse", ended.branch) == ended.outcome.commit
    assert queue.remote("diff", "--name-status", f"main..{ended.branch}").split() == ["A", "built.txt"]
    assert queue.remote("show", f"{ended.branch}:built.txt") == "done"
    refs = queue.remote("for-each-ref", "--format=%(refname)", "refs/quintet").split()
    assert refs == [f"refs/quintet/{task}/archive"]
    if run:
        assert ended.outcome.run == run, (ended.outcome, ended.takeovers)
    return ended


def test_a_task_passes_on_a_machine_that_has_only_the_remote(queue: Fleet) -> None:
    task = queue.add("a")
    worker = queue.machine("anna")
    running = until_agent(queue, task, PROGRAMMER.name)
    refs = queue.until(lambda: queue.remote("for-each-ref", "--format=%(refname)", "refs/quintet"))
    assert refs == f"refs/quintet/{task}/state"
    ended = check_passed(queue, task, running.progress.run)
    assert ended.outcome
    assert "run_started" not in queue.queue("logs", task)
    assert "PASS" in queue.queue("logs", task)
    shown = queue.queue("show", task)
    assert ("\n# PASS" in shown, "## Round 1" in shown, ended.outcome.run in shown) == (True, True, True), shown
    assert tempfile.gettempdir() not in shown.replace("\\", "").replace(str(queue.project.root), ""), shown
    diff = f"git diff {queue.project.git('rev-parse', 'main')[:12]} {ended.outcome.commit[:12]}"
    assert diff in shown.replace("\\", ""), shown
    queue.project.git("fetch", "--quiet", "origin", f"refs/quintet/{task}/archive")
    assert "+done" in queue.project.git(*diff.split()[1:])
    rows = queue.listed()
    assert (rows[task]["status"], rows[task]["machine"], rows[task]["verdict"]) == ("passed", "anna", "PASS")
    queue.end_worker(worker)
    queue.until(lambda: not children_in(queue.project.root), "nothing is left")


def test_the_task_of_a_killed_machine_goes_on_elsewhere_at_its_last_checkpoint(queue: Fleet) -> None:
    task = queue.add("a")
    first = queue.machine("anna")
    run = until_checkpoint(queue, task, PROGRAMMER.name)
    send(group_of(first), signal.SIGKILL)
    queue.machine("bert")
    ended = check_passed(queue, task, run)
    assert (ended.progress.machine, ended.takeovers) == ("bert", 1)
    journal = queue.queue("logs", task)
    assert journal.count("analyst") >= 2


def test_a_frozen_machine_comes_back_late_and_changes_nothing(queue: Fleet) -> None:
    task = queue.add("a")
    first = queue.machine("anna")
    run = until_checkpoint(queue, task)
    (late,) = children_in(queue.project.root, "run_task")
    frozen = group_of(first)
    send(frozen, signal.SIGSTOP)
    try:
        queue.machine("bert")
        queue.until(lambda: queue.task(task).progress.machine == "bert", "bert has taken it over")
    finally:
        send(frozen, signal.SIGCONT)
    queue.until(lambda: late not in children_in(queue.project.root, "run_task"), "the late run has ended")
    ended = check_passed(queue, task, run)
    assert ended.progress.machine == "bert"


def test_a_database_that_is_away_for_two_leases_stops_no_task(queue: Fleet, server: Postgres) -> None:
    task = queue.add("a")
    queue.machine("anna")
    queue.machine("bert")
    run = until_agent(queue, task).progress.run
    server.stop()
    away = time.monotonic() + 2 * queue.lease
    try:
        while time.monotonic() < away:  # the outage itself, not a wait for something
            assert len(children_in(queue.project.root, "run_task")) <= 1
            time.sleep(0.1)
    finally:
        server.start()
    ended = check_passed(queue, task, run)
    assert ended.takeovers == 0


def test_a_remote_that_refuses_a_push_parks_the_task_with_its_reason(queue: Fleet) -> None:
    hook = queue.project.root / "remote.git/hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho too large\nexit 1\n")
    hook.chmod(0o755)
    task = queue.add("a")
    queue.machine("anna")
    assert queue.until_status(task, TaskStatus.PARKED).parked_until == 0
    reason = "cannot be pushed to: [remote rejected] (pre-receive hook declined): too large"
    assert reason in queue.listed()[task]["reason"]
    hook.unlink()
    queue.queue("retry", task)
    check_passed(queue, task)


def test_the_worker_opens_the_pull_request_after_its_push(queue: Fleet) -> None:
    folder = queue.project.root / "bin"
    folder.mkdir()
    (folder / "gh").write_text(PROGRAM)
    (folder / "gh").chmod(0o755)
    wishes = {"POST_PUSH": "origin elsewhere", "POST_PR": "ready"}
    task, advice, *_ = queue.queue("add", queue.task_file("a"), **wishes).splitlines()
    assert advice == "POST_PUSH is left out: a worker pushes the branch of each task itself."
    queue.machine("anna", PATH=f"{folder}:{queue.project.env['PATH']}")
    ended = check_passed(queue, task)
    assert queue.remote("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main", ended.branch]
    assert [call[1:5] for call in noted(folder / "calls")] == [
        ["pr", one, "--head", ended.branch] for one in ("list", "create")
    ]


def test_a_remote_that_takes_longer_than_the_lease_is_no_lost_machine(queue: Fleet) -> None:
    programs, once = queue.project.root / "slow", queue.project.root / "slow" / "once"
    programs.mkdir()
    git = programs / "git"
    wait = f"[ -e {once} ] || {{ : > {once}; sleep {2 * queue.lease:g}; }}"
    git.write_text(f'#!/bin/sh\ncase "$*" in *fetch*) {wait};; esac\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    task = queue.add("a")
    queue.machine("anna", PATH=f"{programs}:{queue.project.env['PATH']}")
    queue.until(once.exists, "anna fetches")
    queue.machine("bert")
    ended = check_passed(queue, task)
    assert (ended.progress.machine, ended.takeovers) == ("anna", 0)


def test_without_checkpoints_a_takeover_begins_anew_and_nothing_of_the_run_is_in_the_remote(queue: Fleet) -> None:
    task = queue.add("a", QUEUE_CHECKPOINTS="off")
    first = queue.machine("anna")
    run = until_agent(queue, task, PROGRAMMER.name).progress.run
    send(group_of(first), signal.SIGKILL)
    state = f"refs/quintet/{task}/state"
    assert queue.remote("rev-parse", f"{state}^{{tree}}") == queue.remote("rev-parse", "main^{tree}")
    queue.machine("bert")
    ended = check_passed(queue, task)
    assert ended.outcome
    assert ended.outcome.run != run
    archive = f"refs/quintet/{task}/archive"
    assert queue.remote("ls-tree", "-r", "--name-only", archive) == queue.remote("ls-tree", "-r", "--name-only", "main")


def test_a_commit_that_the_remote_does_not_have_is_refused(queue: Fleet) -> None:
    queue.project.git("commit", "--quiet", "--allow-empty", "--message", "Not pushed")
    line = queue.refused("queue", "add", queue.task_file("a"))
    assert line.startswith("the remote origin does not have the commit ")
    assert line.endswith("push it first: git push origin HEAD")
    queue.project.git("remote", "remove", "origin")
    assert "has no remote, and a queue for many machines needs one" in queue.refused(
        "queue", "add", queue.task_file("a")
    )


def test_a_task_that_was_cancelled_goes_on_only_when_its_machine_must_have_stopped_it(queue: Fleet) -> None:
    queue.lease = 15.0
    task = queue.add("a")
    queue.machine("anna")
    run = until_checkpoint(queue, task)
    queue.queue("cancel", task)
    assert "UTC: anna stops it until then" in queue.refused("queue", "remove", task)
    assert "goes on where it was, at " in queue.queue("retry", task)
    assert 0 < queue.task(task).needs.not_before - time.time() <= queue.lease
    assert "there is nothing to retry" in queue.refused("queue", "retry", task)
    check_passed(queue, task, run)


def test_two_workers_cannot_have_the_same_name(queue: Fleet) -> None:
    queue.machine("anna")
    queue.until(queue.database.workers)
    second = queue.worker("--name", "anna", XDG_STATE_HOME=str(queue.project.root / "z"))
    output, _ = second.communicate(timeout=60)
    assert second.returncode == 1
    assert "a worker with the name anna is running on" in output


def test_a_frozen_worker_whose_name_another_has_by_now_ends_and_disturbs_no_task(queue: Fleet) -> None:
    first = queue.machine("anna")
    queue.until(queue.database.workers)
    frozen = group_of(first)
    send(frozen, signal.SIGSTOP)
    try:
        queue.until(lambda: queue.database.workers()[0].silent > queue.lease)
        queue.worker("--name", "anna", XDG_STATE_HOME=str(queue.project.root / "z"))
        task = queue.add("a")
        run = until_agent(queue, task).progress.run
    finally:
        send(frozen, signal.SIGCONT)
    output, _ = first.communicate(timeout=60)
    assert first.returncode == 1
    assert "a worker with the name anna is running on" in output
    assert [worker.name for worker in queue.database.workers()] == ["anna"]
    assert check_passed(queue, task, run).takeovers == 0


def test_a_process_that_is_frozen_in_a_transaction_keeps_nobody_waiting(server: Postgres) -> None:
    frozen, other = Database(server.url), Database(f"{server.url}&options=-c%20lock_timeout%3D60s")
    worker = Worker(name="anna")
    other.beat(worker)
    held = frozen._engine.connect()
    held.execute(sa.update(frozen._workers).values(draining=True))
    assert other.beat(worker) is False, "what it had not finished is undone"
    held.invalidate()
    held.close()
    for database in (frozen, other):
        database.close()


def test_two_slots_that_write_down_at_once_what_a_task_has_used_are_both_heard(server: Postgres) -> None:
    databases, begin = [Database(server.url) for _ in range(4)], threading.Barrier(4)

    def spend(database: Database) -> None:
        for number in range(40):
            begin.wait(60)
            database.spend(f"task-{number}", "2026-01-01", 5, 0.0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(spend, databases))
    assert databases[0].spent("2026-01-01") == (200, 0.0)
    for database in databases:
        database.close()
