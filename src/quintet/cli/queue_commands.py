"""The commands of the queue and its workers, as a user sees them."""

import click

from quintet.cli.arguments import FILE, config_argument, json_option, wd_option
from quintet.cli.lazy import completes_with, runs
from quintet.cli.options import SettingsCommand, setting_options

task_argument = click.argument("task", metavar="ID", shell_complete=completes_with("completion:complete_task"))
PRIORITY = click.IntRange(0, 9)


class QueueGroup(click.Group):
    """A group that lists the queue where no command is named."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0].startswith("-"):
            args = ["list", *args]
        return super().resolve_command(ctx, args)


@click.group("queue", cls=QueueGroup, invoke_without_command=True, context_settings={"ignore_unknown_options": True})
@click.pass_context
def queue_group(context: click.Context) -> None:
    """Tasks that wait for workers, run and have ended; without a command it lists them."""
    if context.invoked_subcommand is None:
        context.invoke(queue_list)


@queue_group.command("add")
@click.argument("task_files", nargs=-1, required=True, type=FILE, metavar="TASK.md...")
@click.option("--priority", type=PRIORITY, default=5, show_default=True, help="Smaller numbers come first.")
@click.option("--after", multiple=True, metavar="ID", help="Wait for the PASS of this task. May be repeated.")
@click.option("--delay", metavar="TIME", default="", help="Wait so long first: 90, 30m, 2h or 1d.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="Only for workers with it. May be repeated.")
@click.option("--account", default="", metavar="NAME", help="Count it for this account of QUEUE_ACCOUNTS.")
@click.option("--base", default="", metavar="BRANCH", help="Begin at this branch or commit, by default at HEAD.")
@click.option("-s", "given", multiple=True, metavar="KEY=VALUE", help="A setting for these tasks. May be repeated.")
@wd_option
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
@runs("queue_changes:add")
def queue_add() -> None:
    """Put tasks into the queue, with the settings of the project as they are now.

    The same task at the same commit is put in once.
    """


@queue_group.command("list")
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option("--all", "everything", is_flag=True, help="Show all that have ended, not only the newest.")
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
@runs("queue:list_tasks")
def queue_list() -> None:
    """List the tasks: what runs where, what waits for what, and what has ended."""


@queue_group.command("show")
@task_argument
@json_option
@runs("queue:show")
def queue_show() -> None:
    """Show one task: how it stands, what it was made of, and where its report is."""


@queue_group.command("logs")
@task_argument
@runs("queue:logs")
def queue_logs() -> None:
    """Print the journal of a task's run, as far as it has come."""


@queue_group.command("cancel")
@task_argument
@runs("queue_changes:cancel")
def queue_cancel() -> None:
    """Cancel a task that has not ended. What it has done stays; retry continues it."""


@queue_group.command("retry")
@task_argument
@runs("queue_changes:retry")
def queue_retry() -> None:
    """Let a parked or cancelled task go on, or begin a failed one anew."""


@queue_group.command("approve")
@task_argument
@runs("queue_changes:approve")
def queue_approve() -> None:
    """Approve what a task waits with (APPROVE): it goes on when a slot is free."""


@queue_group.command("reject")
@task_argument
@click.argument("notes")
@runs("queue_changes:reject")
def queue_reject() -> None:
    """Send back what a task waits with, and say why."""


@queue_group.command("move")
@task_argument
@click.option("--priority", type=PRIORITY, required=True, help="Smaller numbers come first.")
@runs("queue_changes:move")
def queue_move() -> None:
    """Give a waiting task another priority."""


@queue_group.command("remove")
@task_argument
@runs("queue_changes:remove")
def queue_remove() -> None:
    """Remove a task that does not run from the queue. Its branch stays."""


@queue_group.command("doctor", cls=SettingsCommand)
@config_argument
@json_option
@setting_options
@runs("queue_changes:doctor")
def queue_doctor() -> None:
    """Check the queue: its database, the remote of the project, and the agents of this machine."""


@click.command("worker")
@click.option("--slots", type=click.IntRange(1, 100), default=1, show_default=True, help="Tasks at once.")
@click.option("--name", default="", metavar="NAME", help="By default the name of the machine.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="Take tasks with it too. May be repeated.")
@click.option("--accounts", default="", metavar="NAMES", help="Accounts that agents are logged in to here: a,b.")
@click.option("--until-empty", is_flag=True, help="End when nothing is left to do for it.")
@click.option("--systemd", is_flag=True, help="Print a unit for systemd that starts it so, and start nothing.")
@runs("workers:work")
def worker_command() -> None:
    """Take tasks from the queue and carry them out, until Ctrl-C or SIGTERM; the second one ends it at once."""


@click.group("workers", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
@click.pass_context
def workers_group(context: click.Context, as_json: bool) -> None:
    """The workers of the queue: alive or silent, slots, labels, agents, tasks."""
    if context.invoked_subcommand is None:
        context.invoke(workers_list, as_json=as_json)


@workers_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a list of JSON objects.")
@runs("workers:list_workers")
def workers_list() -> None:
    """List the workers."""


@workers_group.command("drain")
@click.argument("name")
@click.option("--undo", is_flag=True, help="Let it take tasks again.")
@runs("workers:drain")
def workers_drain() -> None:
    """Let a worker finish what it has, and take no more tasks, when it is started again too."""


@workers_group.command("remove")
@click.argument("name")
@runs("workers:remove")
def workers_remove() -> None:
    """Remove a worker from the list that is silent because its machine is gone."""
