"""What to do next, by how the run was left."""

from pathlib import Path

from quintet.loop import journal
from quintet.loop.decide.state import State, Status
from quintet.loop.record.state_file import save_state
from quintet.roles import ANALYST, PROGRAMMER, TESTER
from quintet.watch.runs.advice import Code, advise, step_text
from quintet.watch.runs.folders import read_run
from quintet.watch.runs.model import run_from_events
from tests.watch.events import at, failed_run, finished, sent, started, taken, verdict_of, write

STOP = "interrupted by SIGTERM"


def told(events: list[journal.Event]) -> str:
    return "\n".join(map(step_text, advise(run_from_events(events))))


def stopped(**fields: object) -> list[journal.Event]:
    stop = journal.RunStopped.model_validate({"reason": STOP} | fields)
    return [*started(), sent(1, ANALYST), taken(2, ANALYST, tokens=1490), at(3, stop)]


def test_a_run_at_work_and_one_that_passed_need_none() -> None:
    assert advise(run_from_events(started())) == []
    assert advise(run_from_events([*started(), finished(3, "PASS")])) == []


def test_a_stopped_run_goes_on() -> None:
    steps = advise(run_from_events(stopped()))
    assert STOP in step_text(steps[0])
    assert Code("quintet run") in steps[1]
    assert "/project" in step_text(steps[1])
    assert "terminals were ended" not in step_text(steps[1])


def test_terminals_that_were_ended_are_not_promised() -> None:
    assert "new ones get the same step" in told(stopped(cleaned_up=True))
    ended = [*failed_run()[:-1], at(51, journal.RunFinished(status="FAIL", round=1, cleaned_up=True))]
    assert "quintet attach" in told(failed_run())
    assert "quintet attach" not in told(ended)
    assert "CLEANUP_ON_EXIT" in told(ended)


def test_what_cannot_be_resumed_is_not_said_to_go_on() -> None:
    text = told(stopped(resumable=False))
    assert "nothing to resume" in text
    assert "Resume it it stopped" not in text


def in_worktree(events: list[journal.Event], tree: str = "/gone") -> list[journal.Event]:
    first, *rest = events
    assert isinstance(first, journal.RunStarted)
    where = {"wd": tree, "project": "/project", "branch": "quintet/x", "task_file": "/project/my task.md"}
    return [first.model_copy(update=where), *rest]


def test_a_run_in_a_worktree_goes_on_from_the_checkout_by_its_task() -> None:
    for resumable in (True, False):
        assert "quintet run 'my task.md' in /project" in told(in_worktree(stopped(resumable=resumable)))


def test_a_failed_run_in_a_worktree_is_tried_again_there(tmp_path: Path) -> None:
    failed = [*failed_run()[:-1], at(51, journal.RunFinished(status="FAIL", round=1, cleaned_up=True))]
    text = told(in_worktree(failed, str(tmp_path)))
    assert f"cd {tmp_path} && START_AGENT={PROGRAMMER} PROMPT_FILE=task.md quintet run" in text
    assert f" {tmp_path}/.tmp/" in text
    assert "quintet discard --force" in text
    discarded = told(in_worktree(failed))
    assert " .tmp/" in discarded
    assert "quintet discard" not in discarded


def test_to_start_anew_the_same_task_is_named() -> None:
    """Without it `quintet run` would find no task."""
    assert "start it again: quintet run in /project" in told(stopped(resumable=False))
    for file, named in (("/project/my task.md", "'my task.md'"), ("/elsewhere/task.md", "/elsewhere/task.md")):
        first, *rest = stopped(resumable=False)
        assert isinstance(first, journal.RunStarted)
        text = told([first.model_copy(update={"task_file": file}), *rest])
        assert f"start it again: quintet run {named} in /project" in text


def test_the_limit_of_tokens_comes_with_the_command_that_goes_on() -> None:
    run = run_from_events(stopped(max_tokens=1000))
    command = next(part for part in advise(run)[1] if isinstance(part, Code))
    assert command == "MAX_TOKENS=2500 quintet run", "what is used, and as much again as the limit was"


def test_after_a_fail_of_the_users_command_its_output_is_named() -> None:
    verified = at(31, journal.Verified(round=1, command="make check", exit_code=2, file="007-verify.md"))
    events = [*started(), sent(10, TESTER), taken(30, TESTER, file="006-tester.md"), verdict_of(30, "PASS"), verified]
    first = advise(run_from_events([*events, finished(32, "FAIL")]))[0]
    assert [part for part in first if isinstance(part, Code)] == [
        "make check",
        ".tmp/20260102-030405-abcdef/007-verify.md",
    ]


def seen(tmp_path: Path, events: list[journal.Event], **state: object) -> str:
    """The advice on a run in a project, which may have gone on since."""
    folder = write(tmp_path / ".tmp" / "20260102-030405-abcdef", events)
    if state:
        save_state(State(**state), tmp_path / ".tmp" / "quintet-state.json")  # type: ignore[arg-type]
    return "\n".join(map(step_text, advise(read_run(folder))))


def test_a_run_that_was_killed_can_be_resumed_where_there_is_something_to_resume(tmp_path: Path) -> None:
    assert "Resume it" in seen(tmp_path / "a", [*started(), sent(1, ANALYST)])
    assert "nothing to resume" in seen(tmp_path / "b", started()[:3]), "killed among its terminals"


def test_a_run_after_which_another_has_begun_cannot_be_resumed(tmp_path: Path) -> None:
    for name, events in (("stopped", stopped()), ("killed", [*started(), sent(1, ANALYST)])):
        wd = tmp_path / name
        assert "Resume it" in seen(wd, events, run_id="20260102-030405-abcdef")
        assert "Another run has begun since" in seen(wd, events, run_id="20270101-000000-ffffff")
        write(wd / ".tmp" / "20270101-000000-ffffff", started())
        newer = seen(wd, events, run_id="20270101-000000-ffffff", final_status=Status.PASS)
        assert "Another run has begun since" in newer
