"""Run the checks of a run and keep what they say."""

from dataclasses import dataclass
from typing import Final

from quintet import command
from quintet.config import Settings
from quintet.errors import NotGuarded, RunError
from quintet.layout import checks_folder, checks_git_folder
from quintet.loop.decide.checks import RED_STOP, Check, CheckOutcome, passes_already
from quintet.loop.decide.state import When
from quintet.loop.decide.steps import ChecksEnded, Verify
from quintet.loop.record.store import RunStore
from quintet.loop.run.confined import ConfinedCommands
from quintet.loop.run.protection import Protection
from quintet.loop.run.refused_hosts import RefusedHosts
from quintet.sandbox.confine import pin

NOT_COUNTED: Final = 125
"""the exit code of a check that has succeeded while somebody tampered with it"""
_WORDS: Final = {
    When.START: "before anything is done, this check has to fail",
    When.BEFORE_TEST: "before the tester is asked, this check runs",
    When.AFTER_TEST: "the tester's PASS is verified with",
}


@dataclass(frozen=True)
class CheckRunner:
    """Runs checks, each in a sandbox of its own where the agents are in one, and sees that nobody tampers with them."""

    settings: Settings
    store: RunStore
    protection: Protection

    def run_one(self, check: Check, commands: ConfinedCommands) -> command.Outcome:
        """Run a check. One whose protected files were touched, or are not known, has failed."""
        settings = self.settings
        try:
            baseline = self.protection.before_check()
            pins = pin(settings.workspace.tree, baseline.folders, baseline.single_files) if baseline else ()
            ended = commands.run(check.command, settings.response_timeout, self.store.signals.deferred, pins)
            reason = self.protection.after_check()
        except NotGuarded as error:
            ended, reason = command.Outcome(NOT_COUNTED, ""), str(error)
        if not reason:
            return ended
        self.store.warn(f"{check.words} does not count: {reason}")
        output = f"{ended.output}\n(it does not count: {reason})"
        return command.Outcome(ended.exit_code or NOT_COUNTED, output.lstrip("\n"))


def run_checks(step: Verify, settings: Settings, store: RunStore, protection: Protection) -> ChecksEnded:
    """Run one check after the other, up to the first that fails, and keep what each says."""
    if step.when is When.START:
        _refuse_unreadable(step, settings)
    results: list[CheckOutcome] = []
    runner = CheckRunner(settings, store, protection)
    run_id = store.state.run_id
    commands = ConfinedCommands(settings, settings.workspace.tree, checks_folder(run_id), checks_git_folder(run_id))
    commands.clear()
    for check in step.checks:
        store.note(f"{_WORDS[step.when]}: {check.words}")
        ended = runner.run_one(check, commands)
        with store.signals.deferred():
            name = _file_name(step, store.state.sequence, len(results) + 1)
            kept = store.responses.keep_output(name, check.script, ended.exit_code, ended.output)
        results.append(CheckOutcome(check, ended.exit_code, ended.output, kept.name))
        if ended.exit_code:
            break
    RefusedHosts(store, settings).report("", commands.refused, is_final=True)
    at_start = step.when is When.START
    return ChecksEnded(tuple(results), store.state.sequence + (0 if at_start else len(results)))


def refuse_green_start(done: ChecksEnded, settings: Settings) -> None:
    """Stop a run with RED_FIRST=stop whose checks pass before anything was done: they would prove nothing."""
    if done.last.passed and settings.red_first == RED_STOP:
        raise RunError(f"{passes_already(done.results)}; change it so that it fails now, or set RED_FIRST=warn")


def _refuse_unreadable(step: Verify, settings: Settings) -> None:
    """Refuse a script that no shell can read: it would fail in every round, whatever is built."""
    for check in (check for check in step.checks if check.is_block):
        read = command.run(("sh", "-n", "-c", check.script), settings.workspace.tree, settings.response_timeout)
        if read.exit_code:
            raise RunError(f"{check.title} is no script that sh can read: {read.last_line}")


def _file_name(step: Verify, sequence: int, number: int) -> str:
    """The first numbers of an archive are those of replies: by them a run is known that has something to go on with."""
    if step.when is When.START:
        return f"000-check-{number}.md"
    return f"{sequence + number:03d}-{'verify' if step.when is When.AFTER_TEST else 'check'}.md"
