"""`quintet draft` with the scripted agent in real tmux, and stand-ins for gh."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintet.roles import ANALYST
from quintet.setup.drafting import read_wish
from tests.eventually import eventually
from tests.sandbox.need import need_bubblewrap
from tests.watch.scripted import Scripted, scripted

TASK = """\
*** ORIGINAL EXPLORE SUMMARY ***
Greet people by their name

What is there now: greet.sh prints one line and knows no names.
P1: greet.sh NAME greets that person.

*** SCENARIO TEST ***
Run: sh greet.sh Ann
Expected: it prints Hello, Ann

```verify
sh greet.sh Ann | grep -q "Hello, Ann"
```
"""


def writing(text: str, *before: dict[str, Any]) -> dict[str, Any]:
    return {ANALYST.name: [[*before, {"save_prompt": "../prompt.txt"}, {"reply": text}]]}


@pytest.fixture
def project() -> Iterator[Scripted]:
    with scripted(writing(TASK)) as made:
        made.git("init", "--quiet")
        (made.wd / "greet.sh").write_text("echo Hello\n")
        made.git("add", ".")
        made.git("-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "--quiet", "-m", "first")
        yield made


def test_a_draft_is_written_checked_and_can_be_started(project: Scripted) -> None:
    code, said = project.call("draft", "greet", "people")
    assert code == 0, said
    path = project.wd / "tasks" / "greet-people-by-their-name.md"
    assert path.read_text() == TASK
    assert "Written: tasks/greet-people-by-their-name.md" in said
    assert "tasks/greet-people-by-their-name.md: verify block 1 fails today, as it should" in said
    assert "warning" not in said
    prompt = (project.root / "prompt.txt").read_text()
    assert "THE WISH\ngreet people\n" in prompt
    assert project.call("lint", str(path))[0] == 0
    assert project.call("run", str(path), "--dry-run")[0] == 0
    assert "No terminals" in project.call("ps")[1], "its terminal has ended with it"


def test_what_the_agent_and_its_checks_change_in_the_project_is_undone(project: Scripted) -> None:
    text = TASK.replace("sh greet.sh Ann |", "echo broken > greet.sh; echo Hello, Ann |")
    project.script(writing(text, {"run": "echo new > new.txt"}))
    for number in ("", "-2"):
        code, said = project.call("draft", "greet")
        assert code == 0, said
        assert "verify block 1 succeeds today" in said
        assert f"Written: tasks/greet-people-by-their-name{number}.md" in said
    assert (project.wd / "greet.sh").read_text() == "echo Hello\n"
    assert not (project.wd / "new.txt").exists()
    assert "2 changes of the agent and its checks to the project undone; kept as " in said


def test_a_blank_keeps_a_run_from_starting(project: Scripted) -> None:
    text = TASK.partition("```")[0].replace("P1: greet.sh", "P1: <<fill in: which greeting?>> greet.sh")
    project.script(writing(text))
    code, said = project.call("draft", "greet")
    assert code == 0
    assert "it has no verify block" in said
    assert "error: a blank of the template is left: <<fill in: which greeting?>>" in said
    assert "fill in its blanks" in said
    assert project.call("run", "tasks/greet-people-by-their-name.md")[0] == 1


def test_a_check_that_nobody_has_read_runs_in_the_sandbox_of_its_agent(project: Scripted) -> None:
    need_bubblewrap()
    escaped = Path(project.env["HOME"]) / "escaped"
    text = TASK.replace("sh greet.sh Ann |", f"touch {escaped}; false |")
    project.script({ANALYST.name: [[{"reply": text}]]})
    code, said = project.call("draft", "greet", SANDBOX="on", SANDBOX_SHOW=str(project.root / "scenario.json"))
    assert code == 0, said
    assert "verify block 1 fails today" in said
    assert not escaped.exists()


def test_a_draft_that_is_interrupted_leaves_nothing(project: Scripted) -> None:
    project.script(writing(TASK, {"run": "echo broken > greet.sh; touch ../at-work"}, {"hang": True}))
    draft = project.start("draft", "greet")
    eventually((project.root / "at-work").exists, "an agent at work")
    draft.send_signal(signal.SIGTERM)
    draft.communicate(timeout=60)
    assert draft.returncode == 128 + signal.SIGTERM
    assert (project.wd / "greet.sh").read_text() == "echo Hello\n"
    assert "No terminals" in project.call("ps")[1]
    assert not [path for path in Path(project.env["HOME"]).rglob("drafts/*") if path.is_dir()]


def test_notes_an_issue_and_standard_input_are_wishes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gh").write_text('#!/bin/sh\necho "title: issue $3"\n')
    (tmp_path / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    notes = tmp_path / "notes.md"
    notes.write_text("my notes\n")
    for source, issue, wish in ((notes, "", "my notes"), (None, "#123", "title: issue 123"), (None, "", "typed")):
        assert read_wish((), source, issue, tmp_path, lambda: "typed").strip() == wish


def test_bad_input_is_one_line(project: Scripted) -> None:
    for options, line in (
        ((), "there is no wish"),
        (("a", "--from", "x.md"), "name one wish"),
        (("--from", "x.md"), "x.md: cannot be read (No such file or directory)"),
        (("--issue", "7"), "issue 7 cannot be read: "),
    ):
        code, said = project.call("draft", *options)
        assert code == 1
        assert line in said
        assert "Traceback" not in said
    (project.wd / "there.md").write_text("mine")
    code, said = project.call("draft", "greet", "--output", "there.md")
    assert (code, "there.md: exists already; choose another name with --output" in said) == (1, True)


def test_an_agent_that_writes_nothing_is_one_line(project: Scripted) -> None:
    project.script({ANALYST.name: [[{"say": "no"}]]})
    code, said = project.call("draft", "greet")
    assert (code, "there is no draft: it wrote none" in said) == (1, True)
    project.script({ANALYST.name: [[{"crash": True}]]})
    code, said = project.call("draft", "greet")
    assert (code, "the agent has ended" in said) == (1, True)


def test_a_link_in_place_of_the_draft_costs_nobody_a_file_and_is_not_read(project: Scripted) -> None:
    mine = project.root / "mine.txt"
    mine.write_text("mine\n")
    place = project.wd / ".tmp" / "agent-responses"
    place.mkdir(parents=True)
    (place / "draft.md").symlink_to(mine)
    project.script({ANALYST.name: [[{"run": f"ln -sf {mine} {place}/draft.md"}]]})
    code, said = project.call("draft", "greet")
    assert mine.read_text() == "mine\n"
    assert (code, "there is no draft: " in said) == (1, True), said
