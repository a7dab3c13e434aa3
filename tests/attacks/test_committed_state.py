"""Somebody with push rights commits what Quintet keeps of a run: it must not speak for one."""

import json
from dataclasses import replace

from quintet.config import load_settings
from quintet.layout import STATE_FILE
from quintet.loop.decide.flow import first_state
from quintet.loop.decide.state import Status
from quintet.loop.record.saved_state import load_project_state, read_saved
from quintet.loop.record.state_file import encode_state
from tests.stub.replies import TASK
from tests.watch.scripted import Scripted, scripted, story


def commit_state(run: Scripted, status: Status) -> None:
    settings = load_settings(None, {}, {"wd": str(run.wd), "prompt": TASK}, run.wd).settings
    state = replace(first_state(settings, "20260101-000000-abcdef", "c1"), final_status=status, wd="")
    path = run.wd / STATE_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode_state(state))
    run.git("add", "--force", str(STATE_FILE))
    run.git("commit", "--quiet", "--message", "Harmless")


def test_a_committed_state_is_that_of_no_run() -> None:
    """A variant of findings 8 and 9: `.tmp` with a state in the commit that a task begins at."""
    for status in (Status.PASS, Status.RUNNING):
        with scripted(story()) as run:
            commit_state(run, status)
            assert load_project_state(run.wd) is None
            (run.wd / STATE_FILE).write_text("{")
            assert read_saved(run.wd / STATE_FILE, run.wd).state is None, "one that cannot be read is no reason to stop"


def test_a_run_starts_beside_a_committed_state() -> None:
    with scripted(story()) as run:
        commit_state(run, Status.RUNNING)
        code, said = run.call("run", "--plain")
        assert code == 0, said
        assert json.loads((run.wd / STATE_FILE).read_text())["run_id"] != "20260101-000000-abcdef"
