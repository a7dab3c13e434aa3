"""`quintet demo`: a whole run in under a minute, and what to do next."""

import shlex
from pathlib import Path
from typing import Final

import click

from quintet.cli.run import run
from quintet.demo import prepare
from quintet.execute import Result
from quintet.layout import CONFIG_FILE, TMP
from quintet.loop.decide.state import Status
from quintet.program import program
from quintet.prose import commands
from quintet.roles import PROGRAMMER

STORY: Final = """
What happened: the analyst wrote an OpenSpec change, and its peer asked for
more. The programmer's first slug.py passed its own test and its review, but the
tester ran check.sh, and it failed. The evidence went back, and the second
slug.py passed. The words were scripted, the work was not: the verdict is the
exit code of check.sh, which Quintet ran too after the tester's PASS.
"""


def demo(folder: Path | None, *, keep: bool) -> int:
    """Prepare the project, run the loop on it, and say what happened."""
    folder = prepare(folder)
    project = folder / "project"
    click.echo(f"Five scripted agents in real terminals, at work on a small project:\n{project}\n")
    # the user's own settings have no part in it
    flags = {"wd": str(project), "cleanup_on_exit": not keep}
    result = run(project / CONFIG_FILE, flags, env={}, with_pass_screen=False)
    left = commands(_what_is_left(folder, result, keep=keep))
    if result.exit_code:
        click.echo(f"\nThe demo did not reach PASS. This is what there is:\n{left}", err=True)
        return result.exit_code
    click.echo(f"{STORY}\nLook at it:\n{left}")
    click.echo("\nThe same with real agents, in a project of yours:")
    for words in ("init", 'new "what you want, in one line"', "run tasks/..."):
        click.echo(f"  {program()} {words}")
    return 0


def _what_is_left(folder: Path, result: Result, *, keep: bool) -> list[tuple[str, str]]:
    """Commands that show and remove what the demo has left, each with what it does."""
    rows = [(f"cd {shlex.quote(str(folder / 'project'))}", ""), ("git log -p", "what the agents have changed")]
    if result.run_id and result.status is Status.RUNNING:
        rows.append((f"{program()} run", "go on with it"))
    if result.run_id:
        rows += [
            (f"ls {TMP}/{result.run_id}", "every prompt and reply, and report.html"),
            (f"{program()} dashboard", "the same in the browser"),
        ]
    if result.run_id and keep:
        rows += [
            (f"{program()} attach {PROGRAMMER}", "its terminal; Ctrl-b d leaves it"),
            (f"{program()} stop --session {result.session}", "end all five terminals"),
        ]
    return [*rows, (f"rm -r {shlex.quote(str(folder))}", "remove all of the demo")]
