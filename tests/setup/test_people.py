"""What people tell a run from outside: refusals on a saved run, and a few real runs that wait for a person."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quintet.cli.main import cli
from quintet.errors import RunError
from quintet.loop.decide.state import Gate, State, Status
from quintet.loop.record.people import People
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import digest_of, save
from quintet.loop.record.state_file import state_file_of
from quintet.roles import PROGRAMMER, Phase
from quintet.setup import people
from tests.eventually import eventually, show_journals
from tests.stub.preloaded import start
from tests.stub.project import Done, Project, finish, project_in
from tests.watch.scripted import scripted, story

RUN = "20260101-000000-abcdef"


class SavedRun:
    """A run that is not at work, and waits for a person."""

    def __init__(self, wd: Path) -> None:
        self.wd = wd
        self.record = RunRecord(wd, RUN)
        self.record.open()
        self.save()
        self.add_folder(RUN)

    def save(self, **fields: Any) -> None:
        path = state_file_of(self.wd)
        state = State(**{"wd": str(self.wd), "run_id": RUN, "waiting": Gate.SPEC, **fields})
        save(state, path, self.record, digest_of(path))

    def add_folder(self, run: str) -> None:
        folder = self.wd / ".tmp" / run
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "journal.jsonl").touch()

    @property
    def people(self) -> People:
        return People(self.record.folder)

    def quintet(self, *words: str, **env: str) -> Result:
        return CliRunner().invoke(cli, words, env=env)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SavedRun:
    monkeypatch.chdir(tmp_path)
    return SavedRun(tmp_path)


def test_the_first_of_two_people_wins_and_the_other_is_told(saved: SavedRun) -> None:
    said = saved.quintet("approve", QUINTET_PERSON="ann")
    assert said.exit_code == 0, said.output
    assert f"Approved the specification of {RUN}. It is not at work: " in said.output
    late = saved.quintet("reject", "no", QUINTET_PERSON="bob")
    assert str(late.exception) == "ann was first: it is approved already"


def test_words_that_no_file_can_hold_are_still_read(saved: SavedRun) -> None:
    said = saved.quintet("reject", "half \udcff a\x1b[2J\x07 word", QUINTET_PERSON="an\udcffn\x1b[31m")
    assert f"Sent the specification of {RUN} back to the analyst." in said.output
    decision = saved.people.decision("approve-spec-0")
    assert decision is not None
    assert (decision.approved, decision.notes, decision.by) == (False, "half ? a[2J word", "an?n[31m")


def test_a_decision_that_was_torn_does_not_keep_others_from_deciding(saved: SavedRun) -> None:
    (saved.record.folder / "people").mkdir()
    (saved.record.folder / "people" / "approve-spec-0.json").write_text("")
    people.approve(saved.wd, None, lambda _: None)
    decision = saved.people.decision("approve-spec-0")
    assert decision is not None
    assert decision.approved


def test_without_a_name_the_run_that_waits_is_meant_also_where_a_newer_one_does_not(saved: SavedRun) -> None:
    saved.add_folder("29991231-000000-abcdef")
    people.approve(saved.wd, None, lambda _: None)
    assert saved.people.decision("approve-spec-0") is not None


def test_only_a_person_can_say_something(saved: SavedRun) -> None:
    for words in (("approve",), ("reject", "no"), ("note", "x"), ("pause",)):
        said = saved.quintet(*words, QUINTET_TERMINAL="abcd1234")
        assert "only a person" in str(said.exception), words


def test_what_cannot_be_told_is_one_line(saved: SavedRun) -> None:
    too_many = saved.quintet("note", "a", "b", "c")
    assert str(too_many.exception) == 'put the text into quotation marks: quintet note [RUN] "text"'
    assert "is not at work" in str(saved.quintet("pause").exception)
    assert "waits with something else by now" in refusal(people.approve, saved.wd, None, step="approve-spec-1")
    saved.save(waiting="")
    assert "does not wait for anybody" in refusal(people.approve, saved.wd, None)
    saved.save(waiting=Gate.RESULT, current_phase=Phase.TESTER)
    assert "will not be asked again" in str(saved.quintet("note", "--role", "analyst", "too late").exception)
    saved.save(waiting="", final_status=Status.PASS)
    for act in (people.approve, people.pause):
        assert refusal(act, saved.wd, None).endswith(" is over: PASS")


def refusal(act: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(RunError) as refused:
        act(*arguments, lambda _: None, **options)
    return str(refused.value)


# -- real runs


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        yield made


def quintet(project: Project, *arguments: str, **env: str) -> Done:
    return finish(start(list(arguments), {**project.env, **env}, project.wd))


def waits(project: Project, gate: str) -> None:
    eventually(
        lambda: project.state_file.exists() and project.state.get("waiting") == gate,
        f"waiting at {gate}",
        on_failure=lambda: show_journals(project.wd),
    )


def test_a_run_waits_and_continues_when_a_person_approves(project: Project) -> None:
    run = project.start(APPROVE="spec,result")
    waits(project, "spec")
    assert project.roles == ["analyst", "peer_analyst"], "nothing is built before the word"
    assert quintet(project, "note", "--role", "programmer", "mind the\nold clients", QUINTET_PERSON="ann").code == 0
    said = quintet(project, "approve", QUINTET_PERSON="ann")
    assert (said.code, said.out) == (0, f"Approved the specification of {project.state['run_id']}. The run goes on.\n")
    waits(project, "result")
    assert quintet(project, "note", "--role", "tester", "look twice", QUINTET_PERSON="ann").code == 0
    assert quintet(project, "approve").code == 0
    done = finish(run)
    assert done.code == 0
    decided = project.events("person_decided")
    assert [(event["gate"], event["approved"]) for event in decided] == [("spec", True), ("result", True)]
    assert decided[0]["by"] == "ann"
    assert decided[0]["at"]
    having = [role for role, text in project.stub.prompts if "mind the\nold clients" in text]
    assert having == [PROGRAMMER], "a note travels with the next prompt of its role once"
    text = next(text for role, text in project.stub.prompts if role is PROGRAMMER)
    assert text.startswith("*** NOTE FROM A PERSON ***\nmind the\nold clients\n(from ann)\n\n")
    assert [(event["role"], event["by"]) for event in project.events("person_noted")] == [("programmer", "ann")]
    assert "mind the old clients" in (project.archive / "report.md").read_text()
    assert "a note of ann was not sent, because tester was not asked again: look twice" in done.text.replace("\n", " ")


def test_a_run_that_waits_survives_the_end_of_its_time(project: Project) -> None:
    done = project.run(APPROVE="spec", APPROVE_TIMEOUT="0.05")
    assert done.code == 1
    assert "nobody has approved the spec" in done.text
    assert project.state["waiting"] == "spec"
    run = project.start(APPROVE_TIMEOUT="1000")
    eventually(lambda: len(project.events("approval_asked")) == 2, "a run that asks and waits once more")
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0


def test_a_run_that_waits_survives_a_reboot() -> None:
    """Everything is killed: the run, tmux and the agents in it. Only files are left."""
    with scripted(story()) as real:
        run = real.start("run", APPROVE="spec")
        journal = real.until_there("*/journal.jsonl")
        eventually(lambda: "approval_asked" in journal.read_text(), "a run that waits")
        run.send_signal(signal.SIGKILL)
        run.communicate()
        real.kill_tmux()
        assert real.call("approve")[0] == 0
        code, said = real.call("run")
        assert code == 0, said
        kinds = [event["event"] for event in real.journal]
        assert kinds.count("approval_asked") == 1, "the run continues to wait, and does not ask again"
        assert kinds.count("person_decided") == 1
        assert kinds.count("terminal_created") == 10, "five new terminals for the five that were lost"


def test_limits_of_time(project: Project) -> None:
    done = project.run(MAX_SECONDS="0.001")
    assert done.code == 4, done.text
    assert project.roles == ["analyst"], "it stops before the next prompt"
    assert "MAX_SECONDS is 0.001; set a higher limit" in done.text
    assert project.run(MAX_SECONDS="0", APPROVE="spec", APPROVE_TIMEOUT="0.05", APPROVE_DEFAULT="approve").code == 0
    assert [event["by"] for event in project.events("person_decided")] == ["nobody in time"]
