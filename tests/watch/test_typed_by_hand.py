"""What a person types into an agent's terminal during a run is told, once, wherever the run is looked at."""

import subprocess

from quintet.roles import ANALYST, PROGRAMMER, TESTER
from tests.stub.replies import FAIL
from tests.watch.scripted import DEADLINE, LONG_SUMMARY, Scripted, scripted, story, turns


def type_into(project: Scripted, role: str, words: str) -> None:
    """Press keys in a role's pane, as somebody does who has attached to it."""
    session = project.server["sessions"][0]
    tmux = ["tmux", "-S", str(project.root / "x/quintet/s" / session)]
    listed = subprocess.run(
        [*tmux, "list-panes", "-a", "-F", "#{pane_id} #{window_name}"], capture_output=True, text=True, check=True
    )
    pane = next(line.split()[0] for line in listed.stdout.splitlines() if line.split()[1].startswith(role))
    subprocess.run([*tmux, "send-keys", "-t", pane, words, "Enter"], check=True)


def typed(project: Scripted) -> list[str]:
    return [event["role"] for event in project.journal if event["event"] == "hand_typed"]


def test_a_prompt_that_somebody_types_is_told() -> None:
    wait = {"run": "until test -e .tmp/continue; do sleep 0.02; done"}
    roles = story() | {PROGRAMMER.name: [[wait, {"reply": LONG_SUMMARY}]], TESTER.name: turns(FAIL)}
    with scripted(roles) as project:
        process = project.start("run", "--plain", MAX_ROUNDS="1", START_AGENT=PROGRAMMER.name)
        project.until_there("20*/prompts/*-programmer.md")
        for role, window in ((ANALYST, "system_analyst"), (TESTER, TESTER.name)):  # both are at rest
            type_into(project, window, "what do you think of this?")
            project.until(lambda role=role: role.name in typed(project), f"the word of the {role}")  # type: ignore[misc]
        type_into(project, PROGRAMMER.name, "and you?")
        (project.wd / ".tmp/continue").touch()
        said, _ = process.communicate(timeout=DEADLINE)
        assert "warning: somebody typed into the analyst's terminal" in said
        assert sorted(typed(project)) == [ANALYST.name, PROGRAMMER.name, TESTER.name], "each once"
        report = (project.folder / "report.md").read_text(encoding="utf-8")
        assert "3 hand-typed prompts" in report
        assert "somebody typed into the programmer's terminal" in report
