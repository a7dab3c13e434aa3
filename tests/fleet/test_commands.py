"""The commands of the queue, without a worker: what they add, show, change and refuse."""

import json
import shlex
import stat
import sys
import time
from pathlib import Path

import pytest

from quintet.config import load_settings
from quintet.errors import QueueError
from quintet.fleet.add import find_source, without_login
from quintet.fleet.choosing import Worker, clock
from quintet.fleet.reading import WAITING, QueueReader, open_to_read
from quintet.fleet.tasks import Needs, TaskOutcome, TaskSpec, TaskStatus, attributes_of
from tests.fleet.rig import Fleet, with_remote

NEEDED = {"id", "title", "status", "verdict", "machine", "branch", "commit", "reason"}


def ids(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("add-a-greeting")]


def test_add_puts_tasks_in_with_what_they_wait_for(queue: Fleet) -> None:
    first = ids(queue.queue("add", queue.task_file("a"), "--priority", "2"))[0]
    options = f"--after {first[-8:]} --delay 2h --label gpu --account claude-1 -s limits.max_rounds=3".split()
    second = ids(queue.queue("add", queue.task_file("b"), *options, QUEUE_ACCOUNTS='{"claude-1": 2}'))[0]
    rows = queue.listed()
    assert all(rows[one].keys() >= NEEDED for one in (first, second))
    assert rows[first]["title"] == "Add a greeting to the project, in a file of its own, that says hello."
    assert (rows[first]["status"], rows[first]["priority"]) == ("waiting", 2)
    assert rows[second]["reason"] == f"waits for the PASS of {first}"
    needs = queue.task(second).needs
    assert (needs.labels, needs.account, needs.account_limit, needs.providers) == (
        ("gpu",),
        "claude-1",
        2,
        ("scripted",),
    )
    assert needs.not_before == pytest.approx(time.time() + 7200, abs=600)
    shown = json.loads(queue.queue("show", second, "--json"))
    assert shown["settings"]["limits"]["max_rounds"] == 3
    assert shown["base"] == queue.project.git("rev-parse", "HEAD")
    assert first in queue.queue("show", second)
    assert "has no journal yet" in queue.queue("logs", second)


def test_add_says_what_is_not_in_the_tasks_and_adds_all_or_none(queue: Fleet) -> None:
    (queue.project.wd / "new.txt").write_text("not committed\n")
    assert "without 1 uncommitted change here" in queue.queue("add", queue.task_file("a"))
    bad = queue.project.root / "bad.md"
    bad.write_text("no sections\n")
    assert f"{bad}:2: " in queue.refused("queue", "add", queue.task_file("b"), str(bad))
    assert len(queue.database.tasks()) == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--delay", "soon"), "--delay: found 'soon', allowed: 90, 30m, 2h or 1d"),
        (("-s", "limits.rounds=3"), "-s limits.rounds=3: allowed: KEY=VALUE"),
        (("-s", "limits.max_rounds=0"), "--max-rounds: found"),
        (("--label", "a b"), "--label: found 'a b', allowed: letters"),
        (("--account", "x"), "--account: QUEUE_ACCOUNTS (queue.accounts) has no x; none is set"),
        (("--after", "nothing"), "there is no task nothing in the queue"),
        (("--base", "nowhere"), "WORKSPACE_BASE: there is no commit nowhere"),
    ],
)
def test_a_wrong_option_is_one_line(queue: Fleet, words: tuple[str, ...], line: str) -> None:
    assert line in queue.refused("queue", "add", queue.task_file("a"), *words)
    assert queue.database.tasks() == []


def test_a_queue_that_cannot_be_used_is_one_line(queue: Fleet, tmp_path: Path) -> None:
    gone = f"sqlite:///{tmp_path}/folder"
    (tmp_path / "folder").mkdir()
    assert queue.refused("queue", QUEUE=gone).startswith(f"the queue at {gone} cannot be reached: ")
    away = "postgresql://anna:hunter2@127.0.0.1:1/queue"
    line = queue.refused("queue", QUEUE=away)
    assert line.startswith("the queue at postgresql://127.0.0.1:1/queue cannot be reached: ")
    assert "hunter2" not in line
    assert "allowed: postgresql://USER@HOST/NAME" in queue.refused("queue", QUEUE="mysql://x/y")


def test_the_folder_of_a_queue_keeps_its_rights(queue: Fleet, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    queue.queue(QUEUE=f"sqlite:///{tmp_path}/queue.db")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "queue.db").stat().st_mode) == 0o600
    queue.queue(QUEUE=f"sqlite:///{tmp_path}/new/queue.db")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_queue_of_a_newer_quintet_is_refused(queue: Fleet) -> None:
    queue.database.tasks()
    queue.sql("UPDATE quintet_format SET version = 2")
    line = queue.refused("queue")
    assert "was made by a newer Quintet (format 2." in line
    assert "pip install --upgrade 'quintet[fleet]'" in line


def test_an_older_queue_is_brought_up_to_date(queue: Fleet) -> None:
    queue.database.tasks()
    queue.sql("DELETE FROM quintet_format")
    assert "The queue is empty." in queue.queue()


def test_a_task_is_cancelled_retried_moved_and_removed(queue: Fleet) -> None:
    task, other = queue.add("a"), queue.add("b")
    assert queue.queue("move", other, "--priority", "1").strip() == f"{other} has priority 1 now"
    assert list(queue.listed()) == [other, task]
    assert queue.queue("cancel", task).strip() == f"{task} is cancelled"
    assert queue.listed()[task]["status"] == "cancelled"
    assert queue.refused("queue", "cancel", task) == f"{task} has ended already: cancelled"
    assert queue.refused("queue", "move", task, "--priority", "1").endswith("only a task that waits can be moved")
    assert "waits again" in queue.queue("retry", task)
    assert queue.task(task).status is TaskStatus.WAITING
    assert queue.refused("queue", "retry", task) == f"{task} is waiting; there is nothing to retry"
    assert "is removed" in queue.queue("remove", task)
    assert list(queue.listed()) == [other]
    queue.add("c")
    assert queue.refused("queue", "show", "add").startswith("add means 2 tasks: ")


def test_a_task_that_was_removed_and_is_added_again_begins_anew(queue: Fleet) -> None:
    task = queue.add("a")
    for made, attempt in ((f"quintet/{task}", 2), (f"quintet/{task}-try2-2", 3)):
        queue.project.git("branch", made)
        assert "is removed" in queue.queue("remove", task)
        assert queue.add("a") == task
        assert queue.task(task).attempt == attempt
    assert queue.task(queue.add("b")).attempt == 1


def test_remove_takes_all_attempts_from_the_remote(queue: Fleet) -> None:
    task = queue.add("a")
    with_remote(queue)
    spec = queue.database.spec(task).model_copy(
        update={"repository": str(queue.project.root / "remote.git"), "is_local": False}
    )
    queue.database.delete(task)
    queue.database.add({task: (spec, attributes_of("a", spec.repository, Needs()) | {"attempt": 3})})
    for name in (task, f"{task}-try2", f"{task}-try3", f"{task}-try4", "another"):
        queue.remote("update-ref", f"refs/quintet/{name}/archive", "main")
    assert "is removed" in queue.queue("remove", task)
    left = queue.remote("for-each-ref", "--format=%(refname)", "refs/quintet").split()
    assert left == [f"refs/quintet/{task}-try4/archive", "refs/quintet/another/archive"]


def test_a_remote_that_is_ahead_of_what_was_fetched_has_the_commit(queue: Fleet) -> None:
    with_remote(queue)
    settings = load_settings(None, queue.project.env, {"wd": str(queue.project.wd)}, queue.project.wd).settings
    base = queue.project.git("rev-parse", "HEAD")
    who = ("-c", "user.name=anna", "-c", "user.email=anna@localhost")
    ahead = queue.remote(*who, "commit-tree", "main^{tree}", "-p", "main", "-m", "Of somebody else")
    queue.remote("update-ref", "refs/heads/main", ahead)
    before = queue.project.git("for-each-ref")
    assert find_source(settings, is_local=False).base == base
    assert queue.project.git("for-each-ref") == before
    queue.project.git("commit", "--quiet", "--allow-empty", "--message", "Not pushed")
    with pytest.raises(QueueError, match="does not have the commit"):
        find_source(settings, is_local=False)


def test_a_parked_task_says_until_when_and_goes_on_then_or_after_retry(queue: Fleet) -> None:
    task = queue.add("a")
    until = time.time() + 3600
    queue.note(task, parked="usage limit: come back later", parked_until=until)
    assert queue.listed()[task]["reason"] == f"parked until {clock(until)}: usage limit: come back later"
    assert f"parked    {task}" in queue.queue()
    assert "waits again" in queue.queue("retry", task)
    assert queue.task(task).status is TaskStatus.WAITING
    queue.note(task, parked="usage limit", parked_until=time.time() - 1)
    assert queue.task(task).status is TaskStatus.WAITING


def test_what_was_approved_of_a_failed_attempt_is_forgotten_in_the_next(queue: Fleet) -> None:
    task = queue.add("a")
    assert queue.refused("queue", "approve", task).startswith(f"{task} does not wait for anybody; ")
    queue.note(task, parked="waits for approval", gate="approve-spec-0")
    queue.queue("approve", task)
    approval = queue.task(task).approval
    assert approval
    assert (approval.step, approval.approved) == ("approve-spec-0", True)
    queue.fail(task, reason="its last round (1) has failed")
    said = queue.queue("add", queue.task_file("a"))
    assert f"{task} is in the queue already" in said
    assert f": failed; quintet queue retry {task} " in said
    assert "begins anew (attempt 2)" in queue.queue("retry", task)
    again = queue.task(task)
    assert (again.status, again.attempt, again.approval, again.gate) == (TaskStatus.WAITING, 2, None, "")


def test_the_same_task_at_another_commit_is_another_task(queue: Fleet) -> None:
    first = queue.add("a")
    queue.project.git("commit", "--quiet", "--allow-empty", "--message", "Go on")
    assert queue.add("a") != first


def test_nobody_changes_a_task_that_is_not_as_it_was_seen(queue: Fleet) -> None:
    seen = queue.task(queue.add("a"))
    queue.database.cancel(seen.id)
    assert not queue.database.change(seen, "slot desk/1@here")
    assert queue.task(seen.id).status is TaskStatus.CANCELLED
    cancelled = queue.task(seen.id)
    assert "goes on where it was" in queue.queue("retry", seen.id)
    assert not queue.database.change(cancelled, "waiting")
    given = queue.task(seen.id)
    assert queue.database.change(given, "slot desk/1@here", parked="")
    assert not queue.database.change(given, "slot attic/1@there")
    assert queue.task(seen.id).place == "slot desk/1@here"


def test_a_task_is_taken_away_only_where_its_row_has_stayed_the_same(queue: Fleet) -> None:
    waiting = queue.task(queue.add("a"))
    assert queue.database.change(waiting, "slot desk/1@here")
    silent = queue.task(waiting.id)
    assert queue.database.change(silent, takeovers=1)
    assert not queue.database.move(silent, WAITING)
    assert queue.database.move(queue.task(waiting.id), WAITING)
    assert (queue.task(waiting.id).place, queue.task(waiting.id).takeovers) == ("waiting", 1)


def test_workers_are_shown_drained_and_forgotten(queue: Fleet) -> None:
    assert "No worker is running. Start one: quintet worker --slots 2" in queue.call("workers").stdout
    queue.database.beat(Worker(name="anna", slots=2, labels=("gpu",), providers={"codex": "1.2.3"}))
    said = queue.call("workers").stdout
    assert "alive     anna" in said
    assert "0 of 2 slots busy, seen 0 s ago, label gpu, codex 1.2.3" in said
    row = json.loads(queue.call("workers", "list", "--json").stdout)[0]
    assert (row["name"], row["alive"], row["tasks"], row["draining"]) == ("anna", True, [], False)
    assert "takes no more tasks" in queue.call("workers", "drain", "anna").stdout
    assert queue.database.beat(Worker(name="anna", slots=2)) is True
    assert "drained   anna" in queue.call("workers").stdout
    assert "takes tasks again" in queue.call("workers", "drain", "anna", "--undo").stdout
    assert queue.refused("workers", "drain", "bert") == "there is no worker bert; there are: anna"
    assert queue.refused("workers", "remove", "anna") == "anna is running; end it first with Ctrl-C or SIGTERM"
    queue.sql("UPDATE quintet_workers SET beat = beat - 1000")
    assert "anna is removed" in queue.call("workers", "remove", "anna").stdout
    assert queue.database.workers() == []


def test_a_listing_that_is_watched_goes_on_when_the_database_was_away(
    queue: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def look(url: str) -> QueueReader:
        looks.append(url)
        if len(looks) in (2, 4):
            raise QueueError("the queue cannot be reached")
        return open_to_read(url)

    def sleep(_seconds: float) -> None:
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("quintet.cli.queue.open_to_read", look)
    monkeypatch.setattr("quintet.cli.queue.time.sleep", sleep)
    done = queue.call("queue", "list", "--watch")
    assert done.exit_code == 130
    first, *_, last = done.stdout.splitlines()
    assert first == "The queue is empty."
    assert "the queue cannot be reached; it is tried again" in done.stdout
    assert last == "No worker is running. Start one: quintet worker --slots 2"
    assert queue.refused("queue", "list", "--watch") == "the queue cannot be reached"


def test_the_listing_shows_the_newest_that_have_ended(queue: Fleet) -> None:
    spec = TaskSpec(repository="/x", is_local=True, base="c", text="t", settings={})
    names = [f"add-{number}" for number in range(22)]
    queue.database.add({name: (spec, attributes_of("A task", "/x", Needs())) for name in names})
    for name in names:
        queue.database.cancel(name)
    said = queue.queue()
    assert said.startswith("22 cancelled\n")
    assert said.count("cancelled add-") == 20
    assert "and 2 more that have ended: quintet queue list --all" in said
    assert queue.queue("--all").count("cancelled add-") == 22


def test_what_was_spent_on_a_day_is_added_up(queue: Fleet) -> None:
    for task, tokens in (("a", 4), ("b", 8), ("a", 12)):
        queue.database.spend(task, "2026-01-01", tokens, tokens / 4)
    assert queue.database.spent("2026-01-01") == (20, 5.0)
    assert queue.database.spent("2026-01-01", "a") == (12, 3.0)
    assert queue.database.spent("2026-01-02") == (0, 0.0)


def test_one_process_at_a_time_moves_tasks(queue: Fleet) -> None:
    with queue.database.alone() as first, queue.database.alone() as second:
        assert (first, second) == (True, False)
    with queue.database.alone() as again:
        assert again


def test_the_unit_for_systemd_starts_this_program_with_the_given_options(queue: Fleet) -> None:
    said = queue.call(
        "worker", "--slots", "3", "--label", "gpu", "--name", "anna", "--systemd", PATH='/usr/bin:/my "own" bin'
    ).stdout
    words = shlex.join(
        [sys.executable, *["-m", "quintet", "worker", "--slots", "3", "--name", "anna", "--label", "gpu"]]
    )
    command = f"ExecStart={words}"
    path = r'Environment="PATH=/usr/bin:/my \"own\" bin"'
    assert {command, path, "Restart=always"} <= set(said.splitlines())


def test_a_name_with_a_slash_is_refused(queue: Fleet) -> None:
    assert queue.refused("worker", "--name", "a/b") == "--name: found 'a/b', allowed: a name without / in it"


def test_doctor_says_what_is_wrong_and_how_to_fix_it(queue: Fleet) -> None:
    found = json.loads(queue.queue("doctor", "--json"))
    levels = {row["name"]: row["level"] for row in found["checks"]}
    assert found["can_run"] is True
    assert (levels["database"], levels["project"], levels["workers"]) == ("ok", "ok", "warning")
    refusal = "BEFORE UPDATE ON quintet_format BEGIN SELECT RAISE(ABORT, 'only to be read'); END"
    queue.sql(f"CREATE TRIGGER refusal {refusal}")
    said = queue.call("queue", "doctor")
    assert said.exit_code == 1
    assert f"failure  database     the queue at {queue.url}: only to be read" in said.stdout
    done = queue.call("queue", "doctor", QUEUE="postgresql://127.0.0.1:1/x")
    assert done.exit_code == 1
    assert "failure  database" in done.stdout


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://anna:token@example.org/x.git", "https://example.org/x.git"),
        ("https://example.org:8080/x.git", "https://example.org:8080/x.git"),
        ("git@example.org:x.git", "git@example.org:x.git"),
        ("ssh://git@example.org/x.git", "ssh://git@example.org/x.git"),
    ],
)
def test_no_token_of_a_remote_is_in_a_task(address: str, shown: str) -> None:
    assert without_login(address) == shown


def test_an_outcome_survives_its_way_through_a_commit() -> None:
    outcome = TaskOutcome(verdict="PASS", branch="quintet/a", commit="c", run="r", tokens=3, cost=0.5, reason="ü")
    assert TaskOutcome.model_validate_json(outcome.model_dump_json()) == outcome
