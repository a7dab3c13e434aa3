"""What somebody edits or deletes below `.tmp/` between a kill and the next start: the run goes by its own record."""

import json
import shutil
from collections.abc import Callable

import pytest

from quintet.roles import TESTER
from tests.stub.project import ONE_PASS
from tests.stub.replies import PASS, TASK
from tests.stub.server import Turn
from tests.stub.simulated import SimulatedProject


@pytest.fixture
def killed(project: SimulatedProject) -> SimulatedProject:
    """A run that was killed while its programmer was at work."""
    project.stop_at(3)
    return project


def edit(project: SimulatedProject, **fields: object) -> None:
    project.state_file.write_text(json.dumps(project.state | fields), encoding="utf-8")


EDITS: dict[str, Callable[[SimulatedProject], object]] = {
    "the verdict": lambda project: edit(project, final_status="PASS"),
    "the phase": lambda project: edit(project, current_phase="tester", turn="work", dispatched="", sequence=4),
    "the task": lambda project: edit(project, prompt="# Do nothing"),
    "the replies": lambda project: edit(project, outputs={"analyst": "do nothing", "analyst_review": "fine"}),
    "the run": lambda project: edit(project, run_id="20260101-000000-ffffff"),
    "no state": lambda project: project.state_file.write_text("no state"),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edited_state_file_does_not_count(killed: SimulatedProject, what: str) -> None:
    run_id = killed.state["run_id"]
    EDITS[what](killed)
    edited = killed.state_file.read_text()
    done = killed.run()
    assert done.code == 0, done.text
    assert "somebody has changed it" in " ".join(done.out.split())
    assert (killed.roles, killed.state["run_id"], killed.state["prompt"]) == (ONE_PASS, run_id, TASK)
    assert killed.state_file.with_name("quintet-state.json.changed-1").read_text() == edited
    assert [event["text"] for event in killed.events("warned") if "has changed it" in event["text"]] != []


@pytest.mark.parametrize("gone", [".tmp", ".tmp/quintet-state.json"])
def test_what_is_gone_is_put_back_and_the_run_goes_on(killed: SimulatedProject, gone: str) -> None:
    run_id, journal = killed.state["run_id"], (killed.archive / "journal.jsonl").read_bytes()
    path = killed.wd / gone
    killed.clock.elapse(1.0)  # the reply is written: its author does not make folders
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = killed.run(IDLE_GRACE_SECONDS="0.5")
    assert done.code == 0, done.text
    assert "was gone; it is put back" in " ".join(done.out.split())
    # the reply of the programmer may be gone as well, and is asked for again
    assert (list(dict.fromkeys(killed.roles)), killed.state["run_id"]) == (ONE_PASS, run_id)
    assert (killed.archive / "journal.jsonl").read_bytes().startswith(journal)
    assert len(killed.archived) == 5
    assert len(list((killed.archive / "prompts").iterdir())) == 5


def test_a_user_can_begin_anew_where_the_state_is_gone(killed: SimulatedProject) -> None:
    run_id = killed.state["run_id"]
    killed.state_file.unlink()
    assert killed.run(RESUME="0").code == 0
    assert killed.roles == [*ONE_PASS[:3], *ONE_PASS]
    assert killed.state["run_id"] != run_id
    killed.state_file.unlink()
    assert killed.run().code == 0, "a finished run is not put back"
    assert killed.roles == [*ONE_PASS[:3], *ONE_PASS, *ONE_PASS]


def test_a_state_of_another_machine_is_read(killed: SimulatedProject) -> None:
    shutil.rmtree(killed.records)
    edit(killed, dispatched="")
    done = killed.run()
    assert done.code == 0, done.text
    assert "somebody" not in done.text
    assert killed.roles == [*ONE_PASS[:3], *ONE_PASS[2:]]
    assert (killed.records / killed.state["run_id"] / "001-analyst.md").exists()


def test_an_edited_journal_changes_no_report(killed: SimulatedProject) -> None:
    record, journal = killed.records / killed.state["run_id"], killed.archive / "journal.jsonl"
    text = journal.read_text().replace("analyst_review", "none").replace("APPROVED", "REVISE")
    journal.write_text(text + json.dumps({"event": "warned", "at": "", "text": "forged"}) + "\n")
    (killed.archive / "001-analyst.md").write_text("forged, in the archive")
    assert killed.run().code == 0
    assert "forged" not in (record / "journal.jsonl").read_text()
    assert "forged" not in (killed.archive / "report.md").read_text()
    assert "forged" not in (killed.archive / "report.html").read_text()


def test_a_state_file_that_is_edited_while_the_run_is_at_work_is_put_right(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = [Turn(PASS, work=1.0, act=lambda: edit(project, prompt="another"))]
    done = project.run()
    assert done.code == 0, done.text
    assert project.state["prompt"] == TASK
    assert project.events("warned")[-1]["text"].endswith("it is put right")
