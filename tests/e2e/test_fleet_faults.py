"""What goes wrong with a queue for many machines: each is told in one line, and the task says why it waits."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from quintet.fleet.add import Wish
from quintet.fleet.database import Database
from quintet.fleet.tasks import MOST_TAKEOVERS, TaskStatus
from quintet.roles import PROGRAMMER
from tests.e2e.test_fleet import check_passed, group_of, send, until_agent
from tests.fleet.postgres import Postgres, find_program
from tests.fleet.rig import Fleet, children_in
from tests.watch.scripted import DEADLINE
from tests.workspace.worktree_runs import building_story

pytestmark = pytest.mark.e2e_all
PASSWORD = f"correct-horse-{os.getpid()}"
"""another one in each process: one of these tests looks for it in all processes of the machine"""


def sql(server: Postgres, *commands: str, database: str = "postgres") -> None:
    """Let the owner of the server do something."""
    words = [word for command in commands for word in ("-c", command)]
    subprocess.run(
        [
            find_program("psql"),
            "-q",
            "-h",
            str(server.folder),
            "-U",
            server.user,
            "-d",
            database,
            "-v",
            "ON_ERROR_STOP=1",
            *words,
        ],
        check=True,
        capture_output=True,
        timeout=DEADLINE,
    )


def with_password(server: Postgres, user: str) -> None:
    """Make a user who may do everything, and needs a password."""
    rules = server.folder / "data/pg_hba.conf"
    rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}")
    sql(server, f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{PASSWORD}'", "SELECT pg_reload_conf()")


def quintet(queue: Fleet, *words: str, **env: str) -> tuple[int, str]:
    """A command as a process of its own, to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "quintet", *words],
        cwd=queue.project.wd,
        env=queue.project.env | queue.settings | env,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_wrong_database_user_or_password_is_one_line_for_each_command(queue: Fleet, server: Postgres) -> None:
    with_password(server, "anna")
    place = f"postgres?host={server.folder}"
    wrong = {
        f"postgresql://anna:wrong-{PASSWORD}@/{place}": 'password authentication failed for user "anna"',
        f"postgresql://nobody:{PASSWORD}@/{place}": 'role "nobody" does not exist',
        f"postgresql://{server.user}@/nowhere?host={server.folder}": 'database "nowhere" does not exist',
    }
    for url, why in wrong.items():
        for words in (("queue",), ("worker",), ("workers",), ("queue", "add", queue.task_file("a"))):
            code, said = quintet(queue, *words, QUEUE=url)
            assert (code, len(said.splitlines())) == (1, 1), said
            assert said.startswith("quintet: the queue at postgresql:///")
            assert why in said
            assert PASSWORD not in said


def test_a_user_who_may_not_make_or_change_the_tables_is_told_who_may(queue: Fleet, server: Postgres) -> None:
    sql(server, "CREATE ROLE bert LOGIN")
    sql(server, "CREATE DATABASE bare")
    line = queue.refused("queue", QUEUE=f"postgresql://bert@/bare?host={server.folder}")
    assert line.startswith("the queue at postgresql:///bare has no tables yet, and this user may not make them: ")
    assert line.endswith("; let the owner of the database run: quintet queue")
    sql(server, "CREATE DATABASE old")
    owned, given = (f"postgresql://{user}@/old?host={server.folder}" for user in (server.user, "bert"))
    Database(owned).close()
    grants = ("GRANT USAGE ON SCHEMA dbos TO bert", "GRANT ALL ON ALL TABLES IN SCHEMA dbos TO bert")
    sql(server, *grants, database="old")
    assert "The queue is empty." in queue.queue(QUEUE=given), "who may use the tables need not own them"
    sql(server, "UPDATE dbos.dbos_migrations SET version = version - 1", database="old")
    line = queue.refused("queue", QUEUE=given)
    assert "is older than this Quintet (format 1." in line
    assert line.endswith("; let the owner of the database run: quintet queue")
    sql(server, "UPDATE dbos.dbos_migrations SET version = version + 2", database="old")
    assert "was made by a newer Quintet (format 1." in queue.refused("worker", QUEUE=given)


def test_a_commit_that_the_remote_has_lost_parks_the_task(queue: Fleet) -> None:
    queue.project.git("commit", "--quiet", "--allow-empty", "--message", "Pushed, then lost")
    queue.project.git("push", "--quiet", "origin", "HEAD:lost")
    task = queue.add("a")
    base = queue.project.git("rev-parse", "HEAD")
    queue.remote("update-ref", "-d", "refs/heads/lost")
    queue.remote("reflog", "expire", "--expire=now", "--all")
    queue.remote("gc", "--quiet", "--prune=now")
    queue.machine("anna")
    queue.until_status(task, TaskStatus.PARKED)
    assert f"remote.git does not have the commit {base[:10]}" in queue.listed()[task]["reason"]
    queue.project.git("push", "--quiet", "origin", "HEAD:lost")
    queue.until_status(task, TaskStatus.PASSED)


def test_a_setup_command_that_fails_parks_the_task_and_a_taker_runs_it_too(queue: Fleet) -> None:
    (queue.project.wd / ".gitignore").write_text(".tmp/\nneeded.txt\n")
    queue.project.git("commit", "--quiet", "--all", "--message", "Ignore more")
    queue.project.git("push", "--quiet", "origin", "HEAD")
    missing = queue.add("a", WORKSPACE_SETUP="no-such-program --now")
    first = queue.machine("anna")
    queue.until_status(missing, TaskStatus.PARKED)
    reason = queue.listed()[missing]["reason"]
    assert reason.startswith("parked: on anna: the setup command failed (exit code 127): no-such-program --now: ")
    assert reason.endswith("not found")
    assert "exit code 127" in queue.queue("show", missing)
    queue.queue("remove", missing)
    setup = {"WORKSPACE_SETUP": "echo here > needed.txt", "VERIFY_CMD": "test -f needed.txt", "RED_FIRST": "off"}
    task = queue.add("b", None, **setup)
    run = until_agent(queue, task, PROGRAMMER.name).progress.run
    send(group_of(first), signal.SIGKILL)
    queue.machine("bert")
    assert check_passed(queue, task, run).progress.machine == "bert"


def test_an_account_has_two_tasks_at_once_over_two_machines(queue: Fleet) -> None:
    queue.project.script(building_story(think=0.5))
    accounts = {"QUEUE_ACCOUNTS": '{"claude-1": 2}'}
    tasks = [queue.add(name, Wish(account="claude-1", labels=["gpu"]), **accounts) for name in "abcd"]
    queue.machine("cleo", "--slots", "2", "--accounts", "claude-1")
    reason = "waits for a worker with label gpu"
    queue.until(lambda: {row["reason"] for row in queue.listed().values()} == {reason}, reason)
    for name in ("anna", "bert"):
        queue.machine(name, "--slots", "2", "--accounts", "claude-1", "--label", "gpu")
    most, told = 0, set()

    def all_passed() -> bool:
        nonlocal most, told
        most = max(most, sum(one.place != "waiting" for one in queue.database.living()))
        told |= {row["reason"] for row in queue.listed().values() if row["status"] == "waiting"}
        return all(queue.task(task).status is TaskStatus.PASSED for task in tasks)

    queue.until(all_passed, "all have passed", 3 * DEADLINE)
    assert most == 2
    assert "waits for account claude-1 (2 of 2 busy)" in told
    assert {queue.task(task).progress.machine for task in tasks} <= {"anna", "bert"}


@pytest.mark.parametrize("push", ["0", "1"])
def test_a_failed_task_is_pushed_where_the_settings_say_so(queue: Fleet, push: str) -> None:
    queue.project.script(building_story())
    task = queue.add("a", VERIFY_CMD="exit 1", MAX_ROUNDS="1", RED_FIRST="off", QUEUE_PUSH_FAILED=push)
    queue.machine("anna")
    queue.until_status(task, TaskStatus.FAILED)
    heads = queue.remote("for-each-ref", "--format=%(refname:short)", "refs/heads/quintet").split()
    row = queue.listed()[task]
    assert row["verdict"] == "FAIL"
    if push == "1":
        assert heads == [row["branch"]] == [f"quintet/failed/{task}"]
        assert queue.remote("show", f"{heads[0]}:built.txt") == "done"
    else:
        assert (heads, row["branch"]) == ([], "")
        assert "its work was not pushed" in queue.queue()
    assert "FAIL" in queue.queue("logs", task)


def at_work_after(queue: Fleet, task: str, takeovers: int) -> bool:
    found = queue.task(task)
    return found.takeovers == takeovers and bool(found.progress.agent)


def test_a_task_that_ends_its_workers_is_parked_after_three_takeovers(queue: Fleet) -> None:
    task = queue.add("a")
    worker = queue.machine("anna")
    for takeovers in range(MOST_TAKEOVERS + 1):
        queue.until(partial(at_work_after, queue, task, takeovers))
        send(children_in(queue.project.root, "slot"), signal.SIGKILL)
    parked = queue.until_status(task, TaskStatus.PARKED)
    assert parked.parked == "its worker has died or was lost 4 times; anna was the last"
    assert "waits again" in queue.queue("retry", task)
    check_passed(queue, task)
    queue.end_worker(worker)


def test_a_person_approves_on_one_machine_what_another_goes_on_with(queue: Fleet) -> None:
    line = queue.refused("queue", "add", queue.task_file("a"), APPROVE="spec", QUEUE_CHECKPOINTS="off")
    assert line.startswith("APPROVE needs QUEUE_CHECKPOINTS: ")
    queue.project.script(building_story())
    task = queue.add("a", APPROVE="spec")
    first = queue.machine("anna")
    parked = queue.until_status(task, TaskStatus.PARKED)
    queue.end_worker(first)
    assert queue.listed()[task]["reason"].endswith(f"quintet queue approve {task}")
    assert "is approved" in queue.queue("approve", task)
    queue.machine("bert")
    assert check_passed(queue, task, parked.progress.run).progress.machine == "bert"


def test_the_password_of_the_database_is_nowhere(queue: Fleet, server: Postgres) -> None:
    with_password(server, "dora")
    url = f"postgresql://dora:{PASSWORD}@/postgres?host={server.folder}"
    task = queue.add("a")
    worker = queue.machine("anna", QUEUE=url)
    until_agent(queue, task, PROGRAMMER.name)
    seen = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with suppress(OSError):
                seen[int(entry.name)] = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
    assert [pid for pid, (words, _) in seen.items() if PASSWORD.encode() in words] == []
    assert [pid for pid, (_, env) in seen.items() if PASSWORD.encode() in env] == [worker.pid], "agents have it not"
    check_passed(queue, task)
    assert PASSWORD not in queue.end_worker(worker)
    kept = [path for path in queue.project.root.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert kept == []
