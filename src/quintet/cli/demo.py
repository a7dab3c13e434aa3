"""`quintet demo`: a whole run in under a minute, and what to do next."""

import os
from pathlib import Path

import click

from quintet.cli.run import run
from quintet.demo import SCENARIO_FILE, TASK_FILE, prepare
from quintet.loop.responses import TMP
from quintet.loop.state import load_state
from quintet.providers.scripted.provider import SCENARIO_VARIABLE

STORY = """
What happened: the analyst wrote an OpenSpec change and its peer asked for more; the programmer's first
slug.py passed its own test and its review, but the tester ran check.sh and it failed; the evidence went
back, and the second slug.py passed. The words were scripted, the work was not: the verdict is check.sh's
exit code.

  the project       {project}
                    (git log -p shows the change)
  the report        {handoffs}/report.html
  every handoff     {handoffs}
  all of it         quintet dashboard --wd {project}
  a terminal        quintet attach programmer
                    (Ctrl-b d leaves it; quintet stop --session {session} ends all five)

The same with real agents, in a project of yours:

  quintet init
  quintet new "what you want, in one line"
  quintet run tasks/...
"""


def demo(folder: Path | None) -> int:
    """Prepare the project, run the loop on it, and say what happened."""
    folder = prepare(folder)
    project = folder / "project"
    click.echo(f"A small project in {project}, a task, and five scripted agents in real terminals.\n")
    os.environ[SCENARIO_VARIABLE] = str(folder / SCENARIO_FILE)
    flags = {
        "wd": str(project),
        "provider": "scripted",
        "prompt_file": str(folder / TASK_FILE),
        "post_git_commit": True,
        "post_git_commit_comment": "Turn titles into slugs",
        "poll_seconds": "0.5",
    }
    code = run(None, flags, env={})  # the user's own settings have no part in it
    state = load_state(project / TMP / "quintet-state.json")
    if code or state is None:
        click.echo(f"\nThe demo did not reach PASS; what there is to see is in {project}.", err=True)
        return code or 1
    click.echo(STORY.format(project=project, handoffs=project / TMP / state.run_id, session=state.session_name))
    return 0
