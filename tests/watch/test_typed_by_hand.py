"""What a person types into an agent's terminal during a run is told, once, wherever the run is looked at."""

import subprocess

from quintet.roles import ANALYST, PROGRAMMER, TESTER
from tests.stub.project import until
from tests.watch.scripted import Scripted, scripted, story, turns


def type_into(project: Scripted, role: str, words: str) -> None:
    """Press keys in a role's pane, as somebody does who has attached to it."""
    session = project.server["sessions"][0]
    tmux = ["tmux", "-S", str(project.root / "x/quintet/s" / session)]
    listed = subprocess.run(
        [*tmux, "list-panes", "-a", "-F", "#{pane_id} #{window_name}"], capture_output=True, text=True, check=True
    )
    pane = next(line.split()[0] for line in listed.stdout.splitlines() if line.split()[1].startswith(role))
    subprocess.run([*tmux, "send-keys", "-t", pane, words, "Enter"], check=True)


def told(project: Scripted) -> list[str]:
    return [event["role"] for event in project.journal if event["event"] == "hand_typed"]


def test_a_prompt_that_somebody_types_is_told() -> None:
    slow = turns("a summary of the work", think=8.0)
    with scripted(story() | {PROGRAMMER.name: slow}) as project:
        process = project.start("run", "--plain", MAX_ROUNDS="1")
        project.until_there("20*/prompts/*-programmer.md")
        type_into(project, "system_analyst", "what do you think of this?")
        until(lambda: told(project) == [ANALYST.name], "the word of it")
        type_into(project, PROGRAMMER.name, "and you?")
        type_into(project, TESTER.name, "before anything was asked of you")
        until(lambda: TESTER.name in told(project), "the word of the tester")
        said, _ = process.communicate(timeout=120)
        assert "warning: somebody typed into the analyst's terminal" in said
        assert sorted(told(project)) == [ANALYST.name, PROGRAMMER.name, TESTER.name], "each once"
        report = (project.folder / "report.md").read_text(encoding="utf-8")
        assert "3 hand-typed prompts" in report
        assert "somebody typed into the programmer's terminal" in report


def test_a_run_that_nobody_touches_tells_of_nobody() -> None:
    with scripted(story()) as project:
        code, said = project.call("run", "--plain")
        assert code == 0, said
        assert told(project) == []
