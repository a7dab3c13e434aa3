"""Checks as users see them: the real command against a scripted server, with real scripts."""

import os
import signal
import subprocess
from unittest import mock

import pytest

from quintet.roles import PROGRAMMER, TESTER
from tests.stub.project import ONE_PASS, RETRY, Project, until
from tests.stub.replies import PASS, PROGRAMMER_SUMMARY, TASK
from tests.stub.server import Turn
from tests.stub.simulated import KILLED, SimulatedProject, kill

# -- after a PASS


def scenario(script: str) -> str:
    """The task with a check of its own."""
    return f"{TASK}\n```verify\n{script}\n```\n"


def test_the_tasks_own_checks_have_the_last_word(project: SimulatedProject) -> None:
    """All blocks, then VERIFY_CMD: what fails is the programmer's feedback, and what comes after it is not run."""
    second = "echo two >> ran\ntest -e flag || { touch flag; echo no flag; false; }\necho end >> ran"
    task = scenario("echo one >> ran\n```\nThen:\n```verify\n" + second)
    done = project.run(PROMPT=task, VERIFY_CMD="echo three >> ran", RED_FIRST="off")
    assert done.code == 0, done.text
    assert project.roles == [*ONE_PASS, *RETRY]
    assert (project.wd / "ran").read_text().split() == ["one", "two", "one", "two", "end", "three"]
    feedback = project.stub.prompts[5][1]
    assert "this check ended with exit code 1" in feedback
    assert "test -e flag" in feedback
    assert "no flag" in feedback
    assert [(event["command"], event["exit_code"], event["file"]) for event in project.events("verified")] == [
        ("verify block 1", 0, "006-verify.md"),
        ("verify block 2", 1, "007-verify.md"),
        ("verify block 1", 0, "011-verify.md"),
        ("verify block 2", 0, "012-verify.md"),
        ("echo three >> ran", 0, "013-verify.md"),
    ]
    assert (project.archive / "011-verify.md").read_text() == "$ echo one >> ran\n\n\n(exit code 0)\n"


def test_a_check_stops_at_its_first_failing_command_and_cannot_read_the_users_input(project: SimulatedProject) -> None:
    done = project.run(PROMPT=scenario("false\ntouch ran"), MAX_ROUNDS="1")
    assert done.code == 1
    assert not (project.wd / "ran").exists()
    assert project.run(PROMPT=scenario("read line && touch ran"), MAX_ROUNDS="1").code == 1
    assert not (project.wd / "ran").exists()


def test_a_check_that_does_not_end_is_a_fail(project: SimulatedProject) -> None:
    settings = {"MAX_ROUNDS": "1", "RESPONSE_TIMEOUT": "1", "RED_FIRST": "off"}
    done = project.run(PROMPT=scenario("echo begun; sleep 600"), **settings)
    assert done.code == 1
    (verified,) = project.events("verified")
    assert verified["exit_code"] == 124
    assert "begun\n\n(did not end within 1 s)" in (project.archive / verified["file"]).read_text()


# -- before the first prompt


def warnings(project: SimulatedProject) -> list[str]:
    """What was said of checks."""
    return [event["text"] for event in project.events("warned") if "before anything is done" in event["text"]]


def test_a_check_that_fails_at_the_start_is_what_it_should_be(project: SimulatedProject) -> None:
    """It is run once: the run that is stopped and goes on does not run it again."""
    project.stub.script[PROGRAMMER] = [Turn(None)]
    script = "echo ran >> runs\ntest -e flag"
    project.stop_at(3, signal.SIGTERM, PROMPT=scenario(script), IDLE_GRACE_SECONDS="600")
    assert (project.wd / "runs").read_text() == "ran\n"
    (checked,) = project.events("checked")
    assert (checked["when"], checked["command"], checked["exit_code"]) == ("start", "verify block 1", 1)
    assert "ran >> runs" in (project.archive / checked["file"]).read_text()
    assert not warnings(project)
    (project.wd / "flag").touch()
    project.response_file(PROGRAMMER).write_text(PROGRAMMER_SUMMARY, encoding="utf-8")
    done = project.run(PROMPT=scenario(script))
    assert done.code == 0, done.text
    assert (project.wd / "runs").read_text() == "ran\nran\n"
    assert len(project.events("checked")) == 1


def test_a_check_that_passes_already_is_a_warning(project: SimulatedProject) -> None:
    done = project.run(PROMPT=scenario("echo so far so good"), VERIFY_CMD="touch ran && rm ran-not")
    assert done.code == 1
    (warned,) = warnings(project)
    assert warned.startswith("verify block 1 succeeds before anything is done")
    assert [event["command"] for event in project.events("checked")] == ["verify block 1"]


@pytest.mark.parametrize("task", [TASK, scenario("true")])
def test_a_check_that_passes_already_can_stop_the_run_before_any_terminal_exists(
    project: SimulatedProject, task: str
) -> None:
    done = project.run(PROMPT=task, VERIFY_CMD="echo all green", RED_FIRST="stop")
    assert done.code == 1
    named = "verify block 1" if "verify" in task else "`echo all green`"
    assert f"{named} succeeds before anything is done" in done.text
    assert "RED_FIRST=warn" in done.text
    assert not project.stub.of("POST", "/sessions")
    assert not project.stub.prompts
    assert project.events("run_stopped")[0]["resumable"] is False
    (checked,) = project.events("checked")
    assert "(exit code 0)" in (project.archive / checked["file"]).read_text()
    assert project.run(PROMPT=scenario("test -e flag || { touch flag; false; }"), RED_FIRST="stop").code == 0


def test_all_blocks_have_to_pass_for_a_check_to_pass_already(project: SimulatedProject) -> None:
    done = project.run(
        PROMPT=scenario("true\n```\n\n```verify\ntest -e flag || { touch flag; false; }"), RED_FIRST="stop"
    )
    assert done.code == 0, done.text
    assert [event["exit_code"] for event in project.events("checked")] == [0, 1]


def test_the_check_at_the_start_can_be_left_out(project: SimulatedProject) -> None:
    done = project.run(PROMPT=scenario("echo ran >> runs"), RED_FIRST="off")
    assert done.code == 0
    assert (project.wd / "runs").read_text() == "ran\n"
    assert not project.events("checked")
    assert not warnings(project)


def test_a_check_at_the_start_that_is_interrupted_leaves_nothing_behind(command: Project) -> None:
    process = command.start(PROMPT=scenario("echo $$ > pid; exec sleep 600"))
    pid = command.wd / "pid"
    until(lambda: pid.exists() and pid.read_text().strip(), "the check's process")
    process.terminate()
    assert process.wait() == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert not command.stub.of("POST", "/sessions")


def test_a_check_that_no_shell_can_read_is_told_before_any_terminal_exists(project: SimulatedProject) -> None:
    """It would fail in every round, whatever is built."""
    done = project.run(PROMPT=scenario("if true; then\necho it has no end"))
    assert done.code == 1
    assert "verify block 1 is no script that sh can read" in done.text
    assert not project.stub.of("POST", "/sessions")


# -- before the test


def test_a_check_that_fails_before_the_test_saves_the_testers_turn(project: SimulatedProject) -> None:
    script = "test $(wc -l < log) -ge 3 || { echo x >> log; echo not yet; exit 5; }\necho x >> log"
    (project.wd / "log").touch()
    done = project.run(PROMPT=scenario(script), VERIFY_FIRST="1")
    assert done.code == 0, done.text
    assert project.roles == [*ONE_PASS[:-1], *RETRY[:-1], *RETRY]
    feedback = project.stub.prompts[4][1]
    assert "The tester was not asked, because this check ended with exit code 5" in feedback
    assert "not yet" in feedback
    checks = [(event["when"], event["round"], event["exit_code"]) for event in project.events("checked")]
    assert checks == [("start", 1, 5), ("before_test", 1, 5), ("before_test", 2, 5), ("before_test", 3, 0)]
    assert [event["round"] for event in project.events("verified")] == [3]
    assert [event["round"] for event in project.events("round_failed")] == [1, 2]


def test_the_checks_run_again_after_the_pass(project: SimulatedProject) -> None:
    """What the tester did, or what happened meanwhile, may have changed their answer."""
    done = project.run(PROMPT=scenario("test ! -e ran\ntouch ran"), VERIFY_FIRST="1", RED_FIRST="off", MAX_ROUNDS="1")
    assert done.code == 1
    assert [event["exit_code"] for event in project.events("checked")] == [0]
    assert [event["exit_code"] for event in project.events("verified")] == [1]


def test_without_a_check_the_tester_is_asked_at_once(project: SimulatedProject) -> None:
    assert project.run(VERIFY_FIRST="1", RED_FIRST="stop").code == 0
    assert project.roles == list(ONE_PASS)


def test_a_check_before_the_test_that_a_kill_has_ended_is_run_again(project: SimulatedProject) -> None:
    settings = {"PROMPT": scenario("echo ran >> runs"), "VERIFY_FIRST": "1", "RED_FIRST": "off"}
    with mock.patch("quintet.loop.run.driver.run_checks", kill):
        assert project.run(**settings).code == KILLED
    done = project.run(**settings)
    assert done.code == 0, done.text
    assert project.roles == list(ONE_PASS), "no agent is asked twice"
    assert [event["exit_code"] for event in project.events("checked")] == [0]


# -- with the guard


def test_checks_see_the_tree_as_the_guard_has_put_it_right(project: SimulatedProject) -> None:
    """The tester makes the file that the check asks for: it goes, and so does the PASS."""
    repository(project)
    made = project.wd / "built"
    project.stub.script[TESTER] = [Turn(PASS, act=made.touch)]
    done = project.run(PROMPT=scenario("test -e built"), MAX_ROUNDS="1")
    assert done.code == 1
    assert [event["exit_code"] for event in project.events("verified")] == [1]


def test_a_protected_check_that_the_programmer_weakens_is_run_as_it_was(project: SimulatedProject) -> None:
    (project.wd / "check.sh").write_text("exit 1\n")
    repository(project)

    def weaken() -> None:
        (project.wd / "check.sh").write_text("true\n")

    project.stub.script[PROGRAMMER] = [Turn(PROGRAMMER_SUMMARY, act=weaken)]
    task = scenario("sh check.sh")
    assert project.run(PROMPT=task, MAX_ROUNDS="1", PROTECT="check.sh").code == 1
    assert (project.wd / "check.sh").read_text() == "exit 1\n"
    assert project.run(PROMPT=task, MAX_ROUNDS="1").code == 0, "nothing protects it"


def repository(project: SimulatedProject) -> None:
    """Make the project one, with all that is there in a commit."""
    name = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    for words in (("init", "--quiet"), ("add", "--all"), (*name, "commit", "--quiet", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *words], cwd=project.wd, check=True, capture_output=True)
