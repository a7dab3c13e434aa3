"""The driver as its users see it: the real command against a scripted server."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from quintet.roles import ANALYST, PROGRAMMER, ROLES, TESTER
from tests.stub.ordinary import without_root_powers
from tests.stub.project import ONE_PASS, RETRY, Project, finish, turns, until
from tests.stub.replies import ANALYST_SUMMARY, FAIL, PASS, PROGRAMMER_SUMMARY, TASK
from tests.stub.server import Fault, Turn, serving
from tests.stub.simulated import SimulatedProject, simulated_project

REVISE = "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- the open point: name the file\n"


# -- verdicts, limits, the user's own command


def test_no_second_answer_is_a_fail_too(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = [*turns("no verdict here"), Turn(None), *turns(PASS)]
    done = project.run(IDLE_GRACE_SECONDS="0.2", MAX_FILE_REMINDERS="0")
    assert done.code == 0, done.text
    assert project.roles == [*ONE_PASS, "tester", *RETRY]
    (missed,) = project.events("reply_missed")
    assert (missed["step"], missed["role"]) == ("1-1-tester-again", TESTER.name)


def test_verify_cmd_has_the_last_word(project: SimulatedProject) -> None:
    """The first time it fails, and what it printed is the programmer's feedback."""
    command = "echo 'from the command'; test -e flag || { touch flag; exit 3; }"
    done = project.run(VERIFY_CMD=command, RED_FIRST="off")
    assert done.code == 0
    assert project.roles == [*ONE_PASS, *RETRY]
    assert "from the command" in project.stub.prompts[5][1]
    assert "exit code 3" in project.stub.prompts[5][1]
    verified = project.events("verified")
    assert [event["exit_code"] for event in verified] == [3, 0]
    assert [event["file"] for event in verified] == ["006-verify.md", "010-verify.md"]
    assert [event["file"] for event in project.events("reply_taken")][-1] == "009-tester.md"
    kept = project.archive / "006-verify.md"
    assert kept.read_text(encoding="utf-8") == f"$ {command}\nfrom the command\n\n(exit code 3)\n"
    assert oct(kept.stat().st_mode & 0o777) == "0o600"


# -- waiting, from outside


def test_a_reminder_is_sent_and_answered(project: SimulatedProject) -> None:
    project.stub.script[ANALYST] = [Turn(None), *turns(ANALYST_SUMMARY)]
    done = project.run(IDLE_GRACE_SECONDS="0.2")
    assert done.code == 0
    assert project.roles == ["analyst", *ONE_PASS]
    reminder = project.stub.prompts[1][1]
    assert str(project.response_file(ANALYST)) in reminder
    assert len(reminder) < len(project.stub.prompts[0][1])
    assert "reminder 1" in done.out


def test_a_prompt_too_long_for_a_query_string_arrives_whole(project: SimulatedProject) -> None:
    long = "".join(f"Line {number}: ünïcödé, 'quotes', `ticks`.\n" for number in range(3000))
    task = project.home / "task.md"
    task.write_text(TASK.replace("Add a greeting.\n", long), encoding="utf-8")
    read: list[str] = []

    def note(role: object, number: int, message: str) -> None:  # noqa: ARG001
        path = Path(message.partition("Read the file ")[2].partition(" from its first line")[0])
        if "Read the file" in message:
            assert oct(path.stat().st_mode & 0o777) == "0o600"
            read.append(path.read_text(encoding="utf-8"))

    project.stub.on_prompt = note
    assert project.run(PROMPT=None, PROMPT_FILE=str(task)).code == 0
    assert len(read) == 4
    assert all(long in text and "RESPONSE FILE INSTRUCTION" in text for text in read)
    assert max(len(message) for _, message in project.stub.prompts) < 60_000


# -- faults of the server in the middle of a run


def test_a_server_that_restarts_stops_nothing(command: Project) -> None:
    stub, gate = command.stub, threading.Event()
    stub.script[PROGRAMMER] = turns(PROGRAMMER_SUMMARY, act=lambda: (gate.wait(30), None)[1])
    with serving(stub):
        address = stub.url
        process = command.start(API=address)
        command.prompt_number(3)
    until(lambda: command.events("server_fault"), "a request that is refused while the server is down")
    gate.set()
    with serving(stub, int(address.rpartition(":")[2])):
        done = finish(process)
    assert done.code == 0, done.text
    assert command.roles == ONE_PASS


def test_a_terminal_that_is_gone_is_fatal_and_can_be_resumed(project: SimulatedProject) -> None:
    def lose(role: object, *_: object) -> None:
        if role is TESTER:
            del project.stub.terminals["00000005"]

    project.stub.on_prompt = lose
    done = project.run()
    assert done.code == 1
    assert "00000005" in done.err
    assert len(done.err.splitlines()) == 1
    assert project.state["final_status"] == "RUNNING"
    assert "00000005" in project.state["last_error"]


@pytest.mark.parametrize("code", [400, 404, 409, 422])
def test_a_prompt_that_is_refused_is_sent_by_the_next_start(project: SimulatedProject, code: int) -> None:
    project.saved_run()
    project.stub.faults["POST /00000003/input"] = [Fault(code)]
    done = project.run()
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert project.state["dispatched"] == ""
    assert project.run().code == 0
    assert project.roles == RETRY


def test_cleanup_after_an_error_goes_on_with_new_terminals(project: SimulatedProject) -> None:
    """What CLEANUP_ON_EXIT has ended is not resumed into: the same step goes to new terminals."""
    project.stub.script[PROGRAMMER] = [Turn(PROGRAMMER_SUMMARY, then="error")]
    first = project.run(CLEANUP_ON_EXIT="1")
    assert first.code == 1
    project.stub.script[PROGRAMMER] = turns(PROGRAMMER_SUMMARY)
    done = project.run()
    assert done.code == 0, done.text
    programmers = [text for role, text in project.stub.prompts if role is PROGRAMMER]
    assert "Add a greeting." in programmers[1], "a fresh agent gets the whole explore summary"
    assert project.roles.count(ANALYST.name) == 1, "what was delivered is not asked for again"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>hello</html>", "is this a terminal server?"),
        (b"[]", "is this a terminal server?"),
        (b'{"service": 5', "only a part of it has come"),
    ],
    ids=["html", "list", "half"],
)
def test_an_address_that_is_no_terminal_server(project: SimulatedProject, body: bytes, said: str) -> None:
    project.stub.faults["GET /health"] = [Fault(200 if body == b"[]" else 404, body=body)]
    project.stub.faults["POST /sessions"] = [Fault(200, body=body)]
    done = project.run()
    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) == 1


# -- the working directory


@pytest.mark.parametrize("name", ["with space", 'it\'s "quoted" $HOME `x`', "ünï-çödé-日本", "-dash", "[a]*"])
def test_any_name_of_a_directory_will_do(tmp_path: Path, name: str) -> None:
    with simulated_project(tmp_path, name) as project:
        done = project.run()
        assert done.code == 0, done.text
        assert project.roles == ONE_PASS
        assert project.state["wd"] == str(project.wd)


def delete_then_write(project: SimulatedProject, delete: Callable[[], None]) -> None:
    """Let the programmer delete files while it works, and write its response five seconds later."""
    project.stub.script[PROGRAMMER] = [Turn(PROGRAMMER_SUMMARY, work=10.0)]
    project.stub.on_prompt = lambda role, *_: project.clock.after(5.0, delete) if role is PROGRAMMER else None


def test_git_clean_in_the_middle_of_a_turn(project: SimulatedProject) -> None:
    """An agent wipes everything that is not committed, then writes its response."""
    subprocess.run(["git", "init", "--quiet"], cwd=project.wd, check=True, env=project.env)

    def clean() -> None:
        subprocess.run(["git", "clean", "-fdxq"], cwd=project.wd, check=True, env=project.env, capture_output=True)

    delete_then_write(project, clean)
    done = project.run()
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS
    assert (project.wd / ".tmp" / ".gitignore").read_text() == "*\n"
    assert project.archived == [f"{number:03d}-{role.output}.md" for number, role in enumerate(ROLES, 1)]


def test_the_responses_place_is_put_back_also_where_the_state_is_elsewhere(project: SimulatedProject) -> None:
    delete_then_write(project, lambda: shutil.rmtree(project.wd / ".tmp"))
    assert project.run(STATE_FILE=str(project.home / "state.json")).code == 0


def test_two_runs_in_one_second_share_nothing(project: SimulatedProject) -> None:
    first, second = project.run(), None
    before = project.state["run_id"]
    second = project.run()
    assert (first.code, second.code) == (0, 0)
    assert project.state["run_id"] != before
    folders = sorted((project.wd / ".tmp").glob("20*"))
    assert [len(list(folder.glob("00*.md"))) for folder in folders] == [5, 5]
    assert (project.wd / ".tmp" / before / "quintet-state.json").exists()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system to write to")
def test_a_state_on_another_file_system_is_archived_too(project: SimulatedProject) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        state = Path(folder) / "state.json"
        assert state.parent.stat().st_dev != project.wd.stat().st_dev
        for _ in range(2):
            assert project.run(STATE_FILE=str(state)).code == 0
        kept = list((project.wd / ".tmp").glob("20*/state.json"))
        assert [json.loads(path.read_text())["final_status"] for path in kept] == ["PASS"]
        assert json.loads(state.read_text())["final_status"] == "PASS"


def test_the_journal_tells_the_whole_story(project: SimulatedProject) -> None:
    assert project.run().code == 0
    kinds = [event["event"] for event in project.events()]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_finished"
    assert kinds.count("prompt_sent") == kinds.count("reply_taken") == 5
    prompt = project.events("prompt_sent")[0]
    assert (project.archive / prompt["file"]).read_text() == project.stub.prompts[0][1]


# -- the state


def test_the_state_is_up_to_date_while_an_agent_has_its_turn(project: SimulatedProject) -> None:
    seen: list[dict[str, object]] = []
    project.stub.on_prompt = lambda *_: seen.append(project.state)
    assert project.run().code == 0
    assert [state["dispatched"] for state in seen] == [
        "1-1-analyst",
        "1-1-analyst_review",
        "1-1-programmer",
        "1-1-programmer_review",
        "1-1-tester",
    ]
    assert {state["final_status"] for state in seen} == {"RUNNING"}


@pytest.mark.parametrize("mode", [0o555, 0o333])
def test_a_directory_that_cannot_be_written_or_read(command: Project, mode: int) -> None:
    command.wd.chmod(mode)
    try:
        done = command.run(prefix=without_root_powers(), cwd=command.home)
    finally:
        command.wd.chmod(0o755)
    assert done.code == 1
    assert "Traceback" not in done.err
    assert str(command.wd) in done.err
    assert len(done.err.splitlines()) == 1
    assert command.stub.calls == []


def test_a_state_that_can_no_longer_be_written_is_one_line(command: Project) -> None:
    state = command.home / "deep" / "state.json"
    command.stub.on_prompt = lambda *_: state.parent.chmod(0o555)
    done = command.run(prefix=without_root_powers(), STATE_FILE=str(state))
    state.parent.chmod(0o755)
    assert done.code == 1
    assert "state file" in done.err
    assert "Traceback" not in done.err
    assert json.loads(state.read_text())["final_status"] == "RUNNING"


def test_tmp_that_is_a_file_is_one_line(project: SimulatedProject) -> None:
    (project.wd / ".tmp").write_text("mine")
    done = project.run()
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert (project.wd / ".tmp").read_text() == "mine"


@pytest.mark.parametrize("prompt", [None, "no sections at all", "*** SCENARIO TEST ***\nonly that\n"])
def test_a_task_that_is_none_is_one_line(project: SimulatedProject, prompt: str | None) -> None:
    done = project.run(PROMPT=prompt)
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert project.stub.calls == []


def test_a_prompt_that_is_not_utf8_does_not_break_the_run(project: SimulatedProject) -> None:
    prompt = os.fsdecode(TASK.replace("greeting", "caf\xe9").encode("latin-1"))
    done = project.run(PROMPT=prompt)
    assert done.code == 0, done.text


# -- after a PASS


def repository(project: SimulatedProject) -> None:
    config = project.home / "gitconfig"
    config.write_text("[user]\n name = A\n email = a@example.invalid\n")
    (project.wd / "readme").write_text("x\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=project.wd, check=True, env=project.env)


def git(project: SimulatedProject, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=project.wd, check=True, env=project.env, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_commit_after_a_pass_with_the_start_commit_in_the_state(project: SimulatedProject) -> None:
    repository(project)
    start = git(project, "rev-parse", "HEAD")
    (project.wd / "left over").write_text("x")
    project.stub.script[PROGRAMMER] = turns(
        PROGRAMMER_SUMMARY, act=lambda: (project.wd / "greet.py").write_text("x") and None
    )
    done = project.run(POST_GIT_COMMIT="1", POST_GIT_COMMIT_COMMENT="greet")
    assert done.code == 0
    assert "the work tree has 1 uncommitted change, which" in done.out
    assert project.state["start_commit"] == start
    assert f"committed as {git(project, 'rev-parse', 'HEAD')}" in done.out
    assert git(project, "log", "-1", "--format=%s") == "greet"
    assert git(project, "show", "--name-only", "--format=", "HEAD").splitlines() == ["greet.py", "left over"]


def test_no_commit_after_a_fail_and_no_warning_in_a_clean_tree(project: SimulatedProject) -> None:
    repository(project)
    project.stub.script[TESTER] = turns(FAIL)
    done = project.run(POST_GIT_COMMIT="1", MAX_ROUNDS="1")
    assert done.code == 1
    assert "uncommitted" not in done.out
    assert git(project, "rev-list", "--count", "HEAD") == "1"
