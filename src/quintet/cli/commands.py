"""Every command as a user sees it: its name, its options and its help. `runs` names the function that does the work."""

from pathlib import Path

import click

from quintet.cli.arguments import (
    FILE,
    PORT,
    config_argument,
    json_option,
    plain_option,
    role_completion,
    run_argument,
    session_completion,
    session_option,
    wd_option,
)
from quintet.cli.lazy import runs
from quintet.cli.options import SettingsCommand, setting_options
from quintet.cli.queue_commands import queue_group, worker_command, workers_group
from quintet.cli.text_commands import completion_command, config_command, profiles_group, prompts_group
from quintet.config.table import OWN_PROVIDERS
from quintet.roles import BY_NAME

# -- first steps


@click.command("init")
@wd_option
@click.option("--provider", type=click.Choice(OWN_PROVIDERS), help="The agent CLI to use; by default the first found.")
@click.option("--openspec/--no-openspec", "with_openspec", default=None, help="Set OpenSpec up, or leave it out.")
@click.option("--yes", is_flag=True, help="Do not ask: set OpenSpec up where it is missing.")
@runs("init:init")
def init_command() -> None:
    """Prepare a project: quintet.json, its schema, a task template, OpenSpec.

    Files that exist are not changed.
    """


@click.command("new")
@click.argument("task", nargs=-1, metavar="TASK")
@wd_option
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="The file; else tasks/NAME.md.")
@runs("tasks:new")
def new_command() -> None:
    """Write a task file from one line that says what you want."""


@click.command("draft")
@click.argument("wish", nargs=-1)
@click.option("--from", "source", type=FILE, metavar="FILE", help="A file with notes on what you want.")
@click.option(
    "--issue", default="", metavar="NUMBER", help="An issue of the repository's tracker, read with gh or glab."
)
@click.option("--output", type=FILE, metavar="TASK.md", help="By default a file in tasks/.")
@wd_option
@runs("draft:draft")
def draft_command() -> None:
    """Let the analyst's agent explore the project and write a task file for WISH.

    Without a wish it is read from standard input. The agent changes nothing in the project. What it could not know
    stays a blank, which keeps a run from starting.
    """


@click.command("lint")
@click.argument("task_file", metavar="TASK.md", type=FILE)
@json_option
@runs("tasks:lint_file")
def lint_command() -> None:
    """Check a task file. An error (exit code 1) is what a run refuses."""


@click.command("doctor", cls=SettingsCommand)
@config_argument
@json_option
@setting_options
@runs("doctor:doctor")
def doctor_command() -> None:
    """Check whether a run can start (exit code 1: it cannot), and say how to fix what is wrong."""


@click.command("demo")
@click.argument("folder", required=False, type=FILE)
@click.option("--keep", is_flag=True, help="Leave the five terminals running, to look into them.")
@runs("demo:demo")
def demo_command() -> None:
    """Watch the whole loop work in under a minute, with scripted agents, without any account."""


# -- a run


@click.command("run", cls=SettingsCommand)
@click.argument("files", nargs=-1, type=FILE, metavar="[CONFIG.json] [TASK.md]")
@click.option("--dry-run", is_flag=True, help="Print the plan and the first prompt, and start nothing.")
@click.option("--worktree", is_flag=True, help="Work in a git worktree of its own: --workspace worktree.")
@click.option("--reload", is_flag=True, help="Let a run that goes on take the config file and prompt texts of now.")
@plain_option
@click.option("--json", "as_json", is_flag=True, help="Print the journal, one JSON object a line.")
@setting_options
@runs("run:run_command")
def run_command() -> None:
    """Carry a task from specification to a passed test, or continue an unfinished run.

    TASK.md is the task file (`quintet new` writes one). CONFIG.json holds settings; without it, quintet.json in the
    project is read, where there is one.
    """


@click.command("status")
@run_argument
@wd_option
@json_option
@runs("status:status")
def status_command() -> None:
    """Show the state of a run; by default the newest."""


@click.command("watch")
@run_argument
@wd_option
@plain_option
@click.option("--json", "as_json", is_flag=True, help="Print the journal as it grows.")
@runs("watch:watch")
def watch_command() -> None:
    """Watch a run until it ends; by default the newest."""


@click.command("dashboard")
@wd_option
@click.option("--port", default=9890, show_default=True, type=PORT, help="0: any free port.")
@click.option("--control", is_flag=True, help="Who opens it can also approve, send back, note, pause and stop.")
@runs("serve:dashboard")
def dashboard_command() -> None:
    """Serve a page that shows the runs of a project, live and past. Without --control it changes nothing."""


@click.command("attach")
@click.argument("role", required=False, shell_complete=role_completion)
@session_option
@click.option("--read-only", is_flag=True, help="Only look: what you type is ignored.")
@runs("terminals:attach_to")
def attach_command() -> None:
    """Show a terminal; Ctrl-b d leaves it.

    ROLE is analyst, peer_analyst, programmer, peer_programmer or tester; by default the first.
    """


@click.command("logs")
@click.argument("role", shell_complete=role_completion)
@session_option
@runs("terminals:logs")
def logs_command() -> None:
    """Print what a terminal has shown so far.

    ROLE is analyst, peer_analyst, programmer, peer_programmer or tester.
    """


@click.command("stop")
@run_argument
@wd_option
@click.option("--session", metavar="NAME", help="Only this session, of any project.", shell_complete=session_completion)
@click.option("--all", "everything", is_flag=True, help="All runs and all terminals, of all projects.")
@click.option("--keep-terminals", is_flag=True, help="Stop only the run's process.")
@runs("terminals:stop")
def stop_command() -> None:
    """Stop the run of this project and end its terminals; quintet run continues it later.

    RUN is one run of the project; by default all of them. Of a run that has ended, the terminals are ended.
    """


# -- what people say


@click.command("approve")
@run_argument
@wd_option
@runs("people:approve")
def approve_command() -> None:
    """Let a run go on that waits for you (APPROVE); by default the newest."""


@click.command("reject")
@click.argument("words", nargs=-1, required=True, metavar="[RUN] NOTES")
@wd_option
@runs("people:reject")
def reject_command() -> None:
    """Send back what a run waits with. NOTES say what has to be different, above any review.

    A specification goes back to the analyst, a result to the programmer.
    """


@click.command("note")
@click.argument("words", nargs=-1, required=True, metavar="[RUN] TEXT")
@click.option("--role", type=click.Choice(list(BY_NAME)), help="By default whoever is asked next.")
@wd_option
@runs("people:note")
def note_command() -> None:
    """Leave a note that travels with the next prompt. Nothing is typed into an agent at work."""


@click.command("pause")
@run_argument
@wd_option
@runs("people:pause")
def pause_command() -> None:
    """Let a run stop after its current turn; quintet run goes on with it."""


# -- afterwards


@click.command("report")
@run_argument
@wd_option
@runs("report:report")
def report_command() -> None:
    """Write the report of a run, by default of the newest: report.md and report.html in its folder."""


@click.command("diff")
@run_argument
@wd_option
@click.option("--stat", is_flag=True, help="Only list the files, with the number of lines added and removed.")
@runs("diff:diff")
def diff_command() -> None:
    """Show what a run has changed, by default the newest, in your pager and with git's colours.

    Without a terminal it is a patch for `git apply`. Of a run that has ended, it is what was there at its end.
    """


@click.command("runs")
@wd_option
@runs("report:list_runs")
def runs_command() -> None:
    """List the runs of a project, the newest first."""


@click.command("restore")
@run_argument
@wd_option
@runs("restore:restore_run")
def restore_command() -> None:
    """Bring the project back to what it was before a run, with the changes that were not committed then.

    What has changed since is kept as a patch first.
    """


@click.command("merge")
@run_argument
@wd_option
@click.option("--squash", is_flag=True, help="As one commit.")
@click.option("--force", is_flag=True, help="Also where the run has not passed.")
@runs("branches:merge")
def merge_command() -> None:
    """Merge the branch of a run into the current branch; by default of the newest in a worktree.

    Where something is in the way, nothing is changed.
    """


@click.command("discard")
@run_argument
@wd_option
@click.option("--force", is_flag=True, help="Also where its work is not merged.")
@runs("branches:discard")
def discard_command() -> None:
    """Remove the worktree and the branch of a run; by default of the newest in a worktree.

    Its agents are ended. Its report and replies are kept.
    """


@click.command("clean")
@wd_option
@click.option("--terminals", is_flag=True, help="Also end terminals whose run has ended, in all projects.")
@click.option("--runs", is_flag=True, help="Also remove the folders of this project's old runs.")
@click.option("--keep", default=1, show_default=True, type=click.IntRange(0), help="With --runs: how many newest stay.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@runs("clean:clean")
def clean_command() -> None:
    """Remove what old runs have left: dead sockets and the folders of terminals that are gone.

    A run that is at work or can be continued loses nothing.
    """


# -- terminals


@click.command("ps")
@runs("terminals:ps")
def ps_command() -> None:
    """List the terminals that are there."""


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Any other than loopback needs QUINTET_TOKEN.")
@click.option("--port", default=9889, show_default=True, type=PORT)
@click.option("--no-token", is_flag=True, help="Let everybody in, for clients that know no token.")
@runs("serve:serve_all")
def serve_command() -> None:
    """Serve the terminals of all runs over HTTP."""


@click.command("detect")
@click.argument("provider")
@click.argument("file", required=False, type=FILE)
@click.option("--jsonl", is_flag=True, help="FILE holds recordings, one JSON object a line; print one status a line.")
@runs("detect:detect")
def detect_command() -> None:
    """Print the status that the screen in FILE, or on standard input, shows.

    PROVIDER is codex, claude_code or another one that is shipped. Make such a file with `tmux capture-pane -p`.
    """


@click.command("providers")
@config_argument
@json_option
@runs("providers:providers")
def providers_command() -> None:
    """List the agent CLIs that a run can have: installed release, login, tried releases."""


SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "First steps": (init_command, new_command, draft_command, lint_command, doctor_command, demo_command),
    "A run": (
        run_command,
        status_command,
        watch_command,
        dashboard_command,
        attach_command,
        logs_command,
        stop_command,
    ),
    "What people say": (approve_command, reject_command, note_command, pause_command),
    "Afterwards": (
        diff_command,
        merge_command,
        discard_command,
        report_command,
        runs_command,
        restore_command,
        clean_command,
    ),
    "Many tasks": (queue_group, worker_command, workers_group),
    "Settings and texts": (config_command, providers_command, prompts_group, profiles_group, completion_command),
    "Terminals": (ps_command, serve_command, detect_command),
}
"""the sections of the help"""
