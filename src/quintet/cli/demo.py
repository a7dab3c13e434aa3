"""`quintet demo`: a whole run in under a minute, and what to do next."""

import os
import shlex
from pathlib import Path
from typing import Final

import click

from quintet.cli.run import run
from quintet.demo import SCENARIO_FILE, TASK_FILE, prepare
from quintet.layout import STATE_FILE, TMP
from quintet.loop.decide.state import State
from quintet.loop.record.state_file import load_state
from quintet.program import program
from quintet.prose import commands
from quintet.providers.scripted.provider import SCENARIO_VARIABLE
from quintet.roles import PROGRAMMER

STORY: Final = """
What happened: the analyst wrote an OpenSpec change, and its peer asked for
more. The programmer's first slug.py passed its own test and its review, but the
tester ran check.sh, and it failed. The evidence went back, and the second
slug.py passed. The words were scripted, the work was not: the verdict is the
exit code of check.sh.
"""


def demo(folder: Path | None, *, keep: bool) -> int:
    """Prepare the project, run the loop on it, and say what happened."""
    folder = prepare(folder)
    project, scenario = folder / "project", str(folder / SCENARIO_FILE)
    click.echo(f"Five scripted agents in real terminals, at work on a small project:\n{project}\n")
    os.environ[SCENARIO_VARIABLE] = scenario  # the agents inherit it
    flags = {
        "wd": str(project),
        "provider": "scripted",
        "prompt_file": str(folder / TASK_FILE),
        "post_git_commit": True,
        "post_git_commit_comment": "Turn titles into slugs",
        "poll_seconds": "0.5",
        "cleanup_on_exit": not keep,
    }
    # the user's own settings have no part in it
    code = run(None, flags, env={SCENARIO_VARIABLE: scenario}, closes=False)
    state = load_state(project / STATE_FILE)
    if code or state is None:
        click.echo("\nThe demo did not reach PASS. What there is of it:", err=True)
        click.echo(commands(_what_is_left(folder, state, keep=keep)), err=True)
        return code or 1
    click.echo(f"{STORY}\nLook at it:\n{commands(_what_is_left(folder, state, keep=keep))}")
    click.echo("\nThe same with real agents, in a project of yours:")
    for words in ("init", 'new "what you want, in one line"', "run tasks/..."):
        click.echo(f"  {program()} {words}")
    return 0


def _what_is_left(folder: Path, state: State | None, *, keep: bool) -> list[tuple[str, str]]:
    """What can be looked at and how it is removed: commands, each with what it does."""
    rows = [(f"cd {shlex.quote(str(folder / 'project'))}", ""), ("git log -p", "what the agents have changed")]
    if state is not None:
        rows += [
            (f"ls {TMP}/{state.run_id}", "every prompt and reply, and report.html"),
            (f"{program()} dashboard", "the same in the browser"),
        ]
    if state is not None and keep:
        rows += [
            (f"{program()} attach {PROGRAMMER}", "its terminal; Ctrl-b d leaves it"),
            (f"{program()} stop --session {state.session_name}", "ends all five terminals"),
        ]
    return [*rows, (f"rm -r {shlex.quote(str(folder))}", "removes all of the demo")]
