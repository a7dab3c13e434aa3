"""Stopped anywhere and started again: the same remaining prompts, nothing asked twice, nothing lost."""

import itertools
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quintet.roles import ANALYST, PROGRAMMER, TESTER
from tests.stub.project import (
    ONE_PASS,
    RETRY,
    STEPS_OF_FAIL_THEN_PASS,
    Project,
    fail_then_pass,
    killed,
    turns,
)
from tests.stub.replies import PASS, TASK
from tests.stub.server import Fault, Turn
from tests.stub.simulated import KILLED, SimulatedProject, kill, simulated_project


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[str, str]], list[str]]:
    """The prompts and the archive of a run that nobody touches."""
    with simulated_project(tmp_path_factory.mktemp("uninterrupted")) as project:
        project.stub.script = fail_then_pass()
        assert project.run().code == 0
        return project.normalised(), project.archived


@pytest.mark.parametrize("moment", ["prompt", "file"])
@pytest.mark.parametrize("step", range(1, STEPS_OF_FAIL_THEN_PASS + 1))
def test_killed_after_every_single_step(
    project: SimulatedProject, uninterrupted: tuple[list[tuple[str, str]], list[str]], step: int, moment: str
) -> None:
    """Killed when a prompt has arrived or when its response file is written, and started again."""
    prompts, archive = uninterrupted
    assert len(prompts) == STEPS_OF_FAIL_THEN_PASS
    project.stub.script = fail_then_pass()
    kill_at(project, step, moment, kill)
    assert project.run().code == KILLED
    assert len(project.stub.prompts) == step
    goes_on_to_the_same_end(project, prompts, archive)


@pytest.mark.parametrize(("step", "moment"), [(3, "prompt"), (8, "file")])
def test_a_process_that_is_killed_goes_on(
    command: Project, uninterrupted: tuple[list[tuple[str, str]], list[str]], step: int, moment: str
) -> None:
    """The same with SIGKILL for a real process."""
    command.stub.script = fail_then_pass()
    kill_at(command, step, moment, lambda: os.kill(process.pid, signal.SIGKILL))
    process = command.start()
    killed(process)
    goes_on_to_the_same_end(command, *uninterrupted)


def kill_at(project: Project, step: int, moment: str, kill: Callable[[], None]) -> None:
    """Kill the run at a prompt with this number, or after its response file."""
    count = itertools.count(1)

    def act(*_: object) -> None:
        if next(count) == step:
            kill()

    if moment == "prompt":
        project.stub.on_prompt = act
    else:
        project.stub.after_file = act


def goes_on_to_the_same_end(project: Project, prompts: list[tuple[str, str]], archive: list[str]) -> None:
    last = project.run()
    assert last.code == 0, last.text
    assert project.normalised() == prompts
    assert project.archived == archive
    assert len(project.stub.of("POST", "/sessions")) == 1
    assert project.state["final_status"] == "PASS"


# -- what happened while nobody was watching


def test_an_answer_that_arrived_while_nobody_was_watching_is_taken(project: SimulatedProject) -> None:
    project.stub.script[PROGRAMMER] = turns("PROGRAMMER_SUMMARY of the night", rest_after=0.1)
    project.stop_at(3)
    project.clock.elapse(1.0)
    assert project.stub.terminals["00000003"].status == "completed"
    assert project.response_file(PROGRAMMER).exists()
    assert project.run().code == 0
    assert project.state["outputs"]["programmer"] == "PROGRAMMER_SUMMARY of the night"
    assert project.roles == ONE_PASS
    assert not [name for name in project.archived if "stale" in name]


def test_a_prompt_that_never_left_is_sent_by_the_next_start(project: SimulatedProject) -> None:
    """The state says dispatched, the terminal knows nothing of it."""
    project.saved_run(dispatched="1-1-programmer", dispatched_at=1)
    done = project.run(IDLE_GRACE_SECONDS="0.2", MAX_FILE_REMINDERS="0")
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS[2:]
    assert "it is sent once more" in done.out
    assert "RESPONSE FILE INSTRUCTION" in project.stub.prompts[0][1]


@pytest.mark.parametrize("known", ["by the server", "by its work"])
def test_a_prompt_that_has_arrived_is_never_sent_twice(project: SimulatedProject, known: str) -> None:
    """Killed when the server had taken the prompt, or when the agent was seen at work; then it is idle for good."""
    if known == "by its work":
        only_input_faults(project, {1: Fault(500, takes_effect=True)})
    project.saved_run()
    project.stub.script[PROGRAMMER] = [Turn(None, work=0.5)]
    project.stop_when(lambda: project.state.get("arrived") == "1-1-programmer", signal.SIGKILL)
    project.clock.elapse(1.0)
    assert project.stub.terminals["00000003"].status == "completed"
    done = project.run(IDLE_GRACE_SECONDS="0.2", MAX_FILE_REMINDERS="0", STRICT_FILE_HANDOFF="1")
    assert done.code == 1
    assert "no response file" in done.text
    assert project.roles == ["programmer"]


def only_input_faults(project: SimulatedProject, faults: dict[int, Fault]) -> None:
    """Let the inputs with these numbers fail."""
    count = 0

    def plan(method: str, path: str) -> Fault | None:
        nonlocal count
        if method != "POST" or not path.endswith("/input"):
            return None
        count += 1
        return faults.get(count)

    project.stub.fault_for = plan  # type: ignore[method-assign]


@pytest.mark.parametrize("reminders", ["0", "1"])
@pytest.mark.parametrize("fault", [Fault(0), Fault(500)])
def test_a_prompt_that_was_refused_is_sent_again_once(project: SimulatedProject, fault: Fault, reminders: str) -> None:
    """The server failed while it took the prompt, and the agent is not seen at work."""
    only_input_faults(project, {6: fault})
    done = project.run(IDLE_GRACE_SECONDS="0.2", MAX_FILE_REMINDERS=reminders)
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS
    assert done.out.count("it is sent once more") == 1


def test_a_prompt_that_is_refused_twice_is_sent_by_the_next_start(project: SimulatedProject) -> None:
    settings = {"IDLE_GRACE_SECONDS": "0.2", "MAX_FILE_REMINDERS": "0", "STRICT_FILE_HANDOFF": "1"}
    only_input_faults(project, {6: Fault(500), 7: Fault(500)})
    first = project.run(**settings)
    assert first.code == 1
    assert project.stub.prompts == []
    second = project.run(**settings)
    assert second.code == 0, second.text
    assert project.roles == ONE_PASS


def test_a_prompt_that_is_refused_twice_is_named_by_the_reminder(project: SimulatedProject) -> None:
    """Then the agent has to learn from it what its task is."""
    only_input_faults(project, {6: Fault(500), 7: Fault(500)})
    done = project.run(IDLE_GRACE_SECONDS="0.2", MAX_FILE_REMINDERS="1")
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS
    first = project.stub.prompts[0][1]
    assert "not certain" in first
    named = next(line for line in first.splitlines() if "/prompts/" in line)
    assert "ANALYST_SUMMARY" in Path(named).read_text()


def test_a_refused_prompt_whose_agent_was_seen_at_work_is_not_sent_again(project: SimulatedProject) -> None:
    only_input_faults(project, {6: Fault(500, takes_effect=True)})
    project.stub.script[ANALYST] = [Turn(None, work=0.5), *turns("ANALYST_SUMMARY late")]
    done = project.run(IDLE_GRACE_SECONDS="0.3", MAX_FILE_REMINDERS="1")
    assert done.code == 0, done.text
    assert project.roles == [ANALYST.name, *ONE_PASS]
    assert "it is sent once more" not in done.out
    assert "not certain" in project.stub.prompts[1][1], "the second is the reminder"


# -- whether to resume


def test_resume_1_without_a_saved_run_fails(project: SimulatedProject) -> None:
    done = project.run(RESUME="1")
    assert done.code == 1
    assert "cannot resume: there is no saved run" in done.err
    assert project.stub.calls == []


def test_resume_1_after_the_end_fails_and_touches_nothing(project: SimulatedProject) -> None:
    assert project.run().code == 0
    before = project.state_file.read_bytes()
    done = project.run(RESUME="1")
    assert done.code == 1
    assert "ended with PASS" in done.err
    assert project.state_file.read_bytes() == before


def test_resume_0_starts_anew_and_keeps_the_old_state(project: SimulatedProject) -> None:
    project.saved_run()
    old = project.state_file.read_bytes()
    run_id = project.state["run_id"]
    done = project.run(RESUME="0")
    assert done.code == 0
    assert project.state["run_id"] != run_id
    assert (project.wd / ".tmp" / run_id / "quintet-state.json").read_bytes() == old
    assert f"the unfinished run {run_id} is left behind" in done.out
    assert len(project.stub.of("POST", "/sessions")) == 2


@pytest.mark.parametrize("trouble", [{"PROMPT": "no sections"}, {"PROMPT": None}, {"API": "http://127.0.0.1:9"}])
def test_a_new_run_that_cannot_start_leaves_the_old_state_where_it_was(
    project: SimulatedProject, trouble: dict[str, Any]
) -> None:
    project.saved_run()
    old = project.state_file.read_bytes()
    assert project.run(RESUME="0", **trouble).code == 1
    assert project.state_file.read_bytes() == old
    assert project.run().code == 0
    assert project.roles == RETRY


def test_another_prompt_on_resume_is_a_warning_and_the_saved_one_stands(project: SimulatedProject) -> None:
    project.saved_run()
    done = project.run(PROMPT=TASK.replace("greeting", "farewell"))
    assert done.code == 0
    assert "warning: the prompt differs" in done.out
    assert project.state["prompt"] == TASK
    assert not [text for _, text in project.stub.prompts if "farewell" in text]


@pytest.mark.parametrize("prompt", [TASK, None])
def test_the_same_prompt_or_none_on_resume_is_no_warning(project: SimulatedProject, prompt: str | None) -> None:
    project.saved_run()
    done = project.run(PROMPT=prompt)
    assert done.code == 0
    assert "differs" not in done.text


OTHER = TASK.replace("greeting", "farewell")


@pytest.fixture
def other(project: SimulatedProject) -> Path:
    """Another task than that of the saved run."""
    project.saved_run()
    path = project.wd / "b.md"
    path.write_text(OTHER, encoding="utf-8")
    return path


@pytest.mark.parametrize("words", [["b.md"], ["--prompt-file", "b.md"], ["--prompt", OTHER], ["b.md", "--dry-run"]])
@pytest.mark.usefixtures("other")
def test_another_task_on_the_command_line_is_refused(project: SimulatedProject, words: list[str]) -> None:
    before = project.state_file.read_bytes()
    done = project.run(*words, PROMPT=None)
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1), done.text
    assert f"the unfinished run {project.state['run_id']} here has another task" in done.err
    assert "-m quintet run. Drop it: " in done.err
    assert project.state_file.read_bytes() == before
    assert project.stub.prompts == []
    assert not list(project.wd.glob(".tmp/20*/journal.jsonl")), "nothing was begun"


def test_the_ways_that_the_refusal_names_work(command: Project) -> None:
    command.saved_run()
    (command.wd / "b.md").write_text(OTHER, encoding="utf-8")
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@localhost"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "Begin"]):
        subprocess.run([*git, *words], cwd=command.wd, env=command.env, check=True)
    said = command.run("b.md", PROMPT=None, WD=None).err
    ways = dict(re.findall(r"(Go on with it|Drop it|Start this one beside it): (.+?)(?:\. |$)", said.strip()))

    def follow(way: str) -> tuple[int, str]:
        env = {name: value for name, value in command.env.items() if name not in ("PROMPT", "WD")}
        done = subprocess.run(
            ["sh", "-c", ways[way]], cwd=command.wd, env=env, capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    code, text = follow("Start this one beside it")
    assert code == 0, text
    (beside,) = Path(command.env["HOME"], ".local/state/quintet/worktrees").glob("*/.tmp/quintet-state.json")
    assert json.loads(beside.read_text())["prompt"] == OTHER
    assert command.state["final_status"] == "RUNNING"
    code, text = follow("Go on with it")
    assert (code, command.state["prompt"]) == (0, TASK), text
    command.saved_run()
    code, text = follow("Drop it")
    assert (code, command.state["prompt"]) == (0, OTHER), text


def test_the_same_task_on_the_command_line_goes_on(project: SimulatedProject, other: Path) -> None:
    other.write_text(TASK, encoding="utf-8")
    assert project.run("b.md", PROMPT=None).code == 0
    assert project.roles == RETRY


def test_a_new_run_ends_the_terminals_of_the_one_that_is_over(project: SimulatedProject) -> None:
    assert project.run().code == 0
    first = project.state["run_id"]
    done = project.run()
    assert done.code == 0
    assert f"the earlier run {first} is over (PASS); its terminals are ended" in done.out
    assert sorted(call.path for call in project.stub.of("POST", "/exit")) == [
        f"/terminals/0000000{n}/exit" for n in range(1, 6)
    ]
    project.stub.terminals.clear()
    assert "terminals are ended" not in project.run().out, "there were none to end"


def test_a_new_api_on_resume_is_used_and_remembered(project: SimulatedProject) -> None:
    """The server has moved to another port."""
    project.stub.script[TESTER] = [Turn(PASS, work=0.5)]
    project.saved_run()
    project.stub.addresses = {"http://moved.invalid"}
    project.stop_at(3, signal.SIGINT, API="http://moved.invalid")
    assert project.state["api"] == "http://moved.invalid"
    assert project.run(API=None).code == 0
    assert project.roles == RETRY


# -- damage


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not JSON"),
        (b'{"version": 1, "final_st', "is not JSON"),
        (b"[1, 2]", "no JSON object"),
        (b"null", "no JSON object"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (None, "cannot be read"),
    ],
    ids=["empty", "half", "list", "null", "binary", "deep", "directory"],
)
def test_a_state_that_cannot_be_read_is_kept_aside(project: SimulatedProject, content: bytes | None, why: str) -> None:
    project.state_file.parent.mkdir()
    if content is None:
        project.state_file.mkdir()
    else:
        project.state_file.write_bytes(content)
    done = project.run()
    assert done.code == 0, done.text
    assert why in done.out
    aside = project.state_file.with_name("quintet-state.json.unreadable-1")
    assert aside.name in done.out
    assert aside.is_dir() if content is None else aside.read_bytes() == content
    assert project.state["final_status"] == "PASS"


def test_resume_1_with_a_state_that_cannot_be_read_says_where_it_is_kept(project: SimulatedProject) -> None:
    project.state_file.parent.mkdir()
    project.state_file.write_text("{")
    done = project.run(RESUME="1")
    assert done.code == 1
    assert "unreadable-1" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"outputs": None},
        {"outputs": []},
        {"outputs": {"analyst": 7, "unknown": "x"}},
        {"full_summary_sent": "yes"},
        {"sequence": -5},
        {"cycle": True},
        {"turn": "verify"},
        {"dispatched": 5, "dispatched_at": "yesterday"},
        {"session_name": None, "feedback": None, "last_error": {}},
        {"version": 99},
    ],
)
def test_damaged_fields_fall_back_to_their_defaults(project: SimulatedProject, fields: dict[str, object]) -> None:
    project.saved_run(**fields)
    done = project.run()
    assert done.code == 0, done.text
    assert len(project.stub.of("POST", "/sessions")) == 1


@pytest.mark.parametrize("terminals", [None, [], {}, {"analyst": None}, {"analyst": {"id": 5}}])
def test_a_state_without_terminals_is_not_resumed_into_nothing(project: SimulatedProject, terminals: object) -> None:
    project.saved_run(terminals=terminals)
    done = project.run()
    assert done.code == 0, done.text
    assert len(project.stub.of("POST", "/sessions")) == 2


@pytest.mark.parametrize("run_id", ["../../outside", "/etc", "", "a/b", 7, "."])
def test_a_run_id_that_is_no_folder_name_leads_nowhere_else(project: SimulatedProject, run_id: object) -> None:
    project.saved_run(run_id=run_id)
    done = project.run()
    assert done.code == 0, done.text
    assert (project.wd / ".tmp" / project.state["run_id"] / "journal.jsonl").is_file()
    assert sorted(path.name for path in project.wd.parent.iterdir()) == ["home", "project"]
    assert project.state["run_id"] not in ("", ".")


def test_a_lost_prompt_is_replaced_by_the_configured_one(project: SimulatedProject) -> None:
    project.saved_run(prompt=None)
    assert project.run().code == 0
    assert project.state["prompt"] == TASK


@pytest.mark.parametrize("api", ["nonsense", "http://[::", "ftp://127.0.0.1/"])
def test_a_damaged_api_in_the_state_is_one_line(project: SimulatedProject, api: str) -> None:
    project.saved_run(api=api)
    done = project.run(API=None)
    assert done.code == 1
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) == 1


def test_terminal_ids_from_a_file_are_not_pasted_into_a_path(project: SimulatedProject) -> None:
    project.saved_run()
    terminals = project.state["terminals"]
    terminals["tester"]["id"] = "../health?x="
    project.change_state(terminals=terminals)
    done = project.run()
    assert done.code == 1
    assert "tester" in done.err


# -- creation


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_interrupted_during_creation_the_next_start_is_a_new_run(
    project: SimulatedProject, number: signal.Signals
) -> None:
    """A dead run's terminals are ended, by itself or by the next start."""
    stub = project.stub
    created = itertools.count(1)

    def plan(method: str, path: str) -> Fault | None:
        if method == "POST" and path.endswith("/terminals") and next(created) == 3:
            kill() if number is signal.SIGKILL else os.kill(os.getpid(), number)
        return None

    stub.fault_for = plan  # type: ignore[method-assign]
    assert project.run().code == {signal.SIGKILL: KILLED, signal.SIGTERM: 143}[number]
    assert stub.prompts == []
    assert project.run().code == 0
    assert len(stub.of("POST", "/sessions")) == 2
    ended = {call.path for call in stub.of("POST", "/exit")}
    assert {f"/terminals/{i:08x}/exit" for i in (1, 2, 3)} <= ended


def test_resume_1_of_a_run_without_terminals_fails(project: SimulatedProject) -> None:
    project.saved_run(terminals={}, sequence=0)
    done = project.run(RESUME="1")
    assert done.code == 1
    assert "before its terminals were there" in done.err
