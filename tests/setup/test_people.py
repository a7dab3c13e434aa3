"""What people tell a run from outside, with the real commands and a scripted server."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.roles import ANALYST, PROGRAMMER
from tests.stub.preloaded import start
from tests.stub.project import Done, Project, finish, killed, project_in, until
from tests.watch.scripted import Scripted, scripted, story


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        yield made


def quintet(project: Project, *arguments: str, **env: str) -> Done:
    return finish(start(list(arguments), {**project.env, **env}, project.wd))


def waits(project: Project, gate: str) -> None:
    until(lambda: project.state_file.exists() and project.state.get("waiting") == gate, f"waiting at {gate}")


def test_a_run_waits_and_goes_on_when_a_person_approves(project: Project) -> None:
    run = project.start(APPROVE="spec,result")
    waits(project, "spec")
    assert project.roles == ["analyst", "peer_analyst"], "nothing is built before the word"
    said = quintet(project, "approve", QUINTET_PERSON="ann")
    assert (said.code, said.out) == (0, f"Approved the specification of {project.state['run_id']}. The run goes on.\n")
    waits(project, "result")
    assert quintet(project, "approve").code == 0
    done = finish(run)
    assert done.code == 0
    decided = project.events("person_decided")
    assert [(event["gate"], event["approved"]) for event in decided] == [("spec", True), ("result", True)]
    assert decided[0]["by"] == "ann"
    assert decided[0]["at"]


def test_what_is_sent_back_is_done_again_with_the_notes(project: Project) -> None:
    run = project.start(APPROVE="spec")
    waits(project, "spec")
    assert quintet(project, "reject", "name the file").code == 0
    until(lambda: len(project.stub.prompts) >= 4 and project.state.get("waiting") == "spec")
    assert "name the file" in project.stub.prompts[2][1]
    assert project.stub.prompts[2][0] is ANALYST
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0


def test_a_run_that_waits_survives_a_kill(project: Project) -> None:
    run = project.start(APPROVE="spec")
    waits(project, "spec")
    run.send_signal(signal.SIGKILL)
    killed(run)
    said = quintet(project, "approve")
    assert "It is not at work: " in said.out
    done = project.run()
    assert done.code == 0, done.text
    assert [event["gate"] for event in project.events("person_decided")] == ["spec"]


def test_a_run_that_waits_survives_a_reboot() -> None:
    """Everything is killed: the run, tmux and the agents in it. Only files are left."""
    with scripted(story()) as real:
        run = real.start("run", APPROVE="spec")
        until(lambda: is_asked(real), "a run that waits")
        run.send_signal(signal.SIGKILL)
        run.communicate()
        real.kill_tmux()
        assert real.call("approve")[0] == 0
        code, said = real.call("run")
        assert code == 0, said
        kinds = [event["event"] for event in real.journal]
        assert kinds.count("approval_asked") == 1, "it waits on, and does not ask again"
        created = [event["role"] for event in real.journal if event["event"] == "terminal_created"]
        assert len(created) == 10, "five new terminals for the five that were lost"


def is_asked(real: Scripted) -> bool:
    journals = list(real.wd.glob(".tmp/*/journal.jsonl"))
    return bool(journals) and "approval_asked" in journals[0].read_text()


def test_two_people_at_once_one_wins_and_the_other_is_told(project: Project) -> None:
    run = project.start(APPROVE="result")
    waits(project, "result")
    run.send_signal(signal.SIGSTOP)  # so that both come before it looks
    assert quintet(project, "approve", QUINTET_PERSON="ann").code == 0
    late = quintet(project, "reject", "no", QUINTET_PERSON="bob")
    assert (late.code, late.err) == (1, "quintet: ann was first: it is approved already\n")
    run.send_signal(signal.SIGCONT)
    assert finish(run).code == 0


def test_approving_what_does_not_wait_is_one_line(project: Project) -> None:
    assert project.run().code == 0
    said = quintet(project, "approve")
    assert said.code == 1
    assert said.err.startswith("quintet: ")
    assert said.err.endswith(" is over: PASS\n")


def test_an_agent_cannot_approve(project: Project) -> None:
    run = project.start(APPROVE="spec")
    waits(project, "spec")
    said = quintet(project, "approve", QUINTET_TERMINAL="abcd1234")
    assert (said.code, "only a person" in said.err) == (1, True)
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0


def test_time_that_is_up_goes_on_as_the_settings_say(project: Project) -> None:
    assert project.run(APPROVE="spec", APPROVE_TIMEOUT="0.05", APPROVE_DEFAULT="approve").code == 0
    assert [event["by"] for event in project.events("person_decided")] == ["nobody in time"]


def test_time_that_is_up_stops_the_run_which_waits_on_when_it_goes_on(project: Project) -> None:
    done = project.run(APPROVE="spec", APPROVE_TIMEOUT="0.05")
    assert done.code == 1
    assert "nobody has approved the spec" in done.text
    assert project.state["waiting"] == "spec"
    run = project.start(APPROVE_TIMEOUT="1000")
    until(lambda: len(project.events("approval_asked")) == 2, "a run that asks and waits once more")
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0


def test_a_note_travels_with_the_next_prompt_of_its_role_once(project: Project) -> None:
    run = project.start(APPROVE="spec")
    waits(project, "spec")
    assert quintet(project, "note", "--role", "programmer", "mind the\nold clients", QUINTET_PERSON="ann").code == 0
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0
    having = [role for role, text in project.stub.prompts if "mind the\nold clients" in text]
    assert having == [PROGRAMMER]
    text = next(text for role, text in project.stub.prompts if role is PROGRAMMER)
    assert text.startswith("*** NOTE FROM A PERSON ***\nmind the\nold clients\n(from ann)\n\n")
    assert [(event["role"], event["by"]) for event in project.events("person_noted")] == [("programmer", "ann")]
    assert "mind the old clients" in (project.archive / "report.md").read_text()


def test_a_note_for_a_role_that_will_not_come_again_is_refused(project: Project) -> None:
    run = project.start(APPROVE="result")
    waits(project, "result")
    said = quintet(project, "note", "--role", "analyst", "too late")
    assert (said.code, "will not be asked again" in said.err) == (1, True)
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0
    assert quintet(project, "note", "too late").code == 1


def test_too_many_words_are_one_line(project: Project) -> None:
    said = quintet(project, "note", "a", "b", "c")
    assert (said.code, said.err) == (1, 'quintet: put the text into quotation marks: quintet note [RUN] "text"\n')


def test_a_pause_stops_before_the_next_prompt_and_the_run_goes_on(project: Project) -> None:
    run = project.start(APPROVE="spec")
    waits(project, "spec")
    said = quintet(project, "pause", QUINTET_PERSON="ann")
    assert said.code == 0
    done = finish(run)
    assert done.code == 6
    assert "paused by ann" in done.text
    assert quintet(project, "pause").code == 1, "it is not at work"
    assert quintet(project, "approve").code == 0
    assert project.run().code == 0


def test_the_limit_of_time_stops_before_the_next_prompt_with_a_code_of_its_own(project: Project) -> None:
    done = project.run(MAX_SECONDS="0.001")
    assert done.code == 4, done.text
    assert project.roles == ["analyst"]
    assert "MAX_SECONDS is 0.001; set a higher limit" in done.text
    assert project.run(MAX_SECONDS="0").code == 0


def test_words_that_no_file_can_hold_are_still_read(project: Project) -> None:
    run = project.start(APPROVE="spec", APPROVE_TIMEOUT="60")
    waits(project, "spec")
    said = quintet(project, "reject", "half \udcff a\x1b[2J\x07 word", QUINTET_PERSON="an\udcffn\x1b[31m")
    assert said.code == 0
    until(lambda: bool(project.events("person_decided")), "a decision that was read")
    decided = project.events("person_decided")[0]
    assert (decided["notes"], decided["by"]) == ("half ? a[2J word", "an?n[31m")
    until(lambda: project.state.get("waiting") == "spec")
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0


def test_a_decision_that_was_torn_does_not_keep_others_from_deciding(project: Project) -> None:
    run = project.start(APPROVE="spec")
    waits(project, "spec")
    (record,) = project.home.rglob(project.state["run_id"])
    (record / "people").mkdir()
    (record / "people" / "approve-spec-0.json").write_text("")
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0


def test_a_note_that_came_too_late_for_any_prompt_is_told_at_the_end(project: Project) -> None:
    run = project.start(APPROVE="result")
    waits(project, "result")
    assert quintet(project, "note", "--role", "tester", "look twice", QUINTET_PERSON="ann").code == 0
    assert quintet(project, "approve").code == 0
    done = finish(run)
    assert done.code == 0
    assert "a note of ann was not sent, because tester was not asked again: look twice" in done.text.replace("\n", " ")


def test_without_a_name_the_run_that_waits_is_meant_also_where_a_newer_one_does_not(project: Project) -> None:
    run = project.start(APPROVE="spec")
    waits(project, "spec")
    newer = project.wd / ".tmp" / "29991231-000000-abcdef"
    newer.mkdir()
    (newer / "journal.jsonl").write_text("")
    assert quintet(project, "approve").code == 0
    assert finish(run).code == 0
