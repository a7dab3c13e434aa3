"""Run the checks of a run and keep what they say."""

from quintet import command
from quintet.config import Settings
from quintet.loop.decide.checks import Check, CheckResult
from quintet.loop.decide.steps import ChecksEnded, Verify
from quintet.loop.record.store import RunStore


def run_checks(step: Verify, settings: Settings, store: RunStore) -> None:
    """Run one check after the other, up to the first that fails, and fold in how they ended."""
    results: list[CheckResult] = []
    for number, check in enumerate(step.checks, store.state.sequence + 1):
        store.note(f"the tester's PASS is verified with {check.words}")
        results.append(_run(check, number, settings, store))
        if not results[-1].passed:
            break
    store.fold(step, ChecksEnded(tuple(results), store.state.sequence + len(results)))


def _run(check: Check, number: int, settings: Settings, store: RunStore) -> CheckResult:
    deferred = store.signals.deferred
    ended = command.run(check.command, settings.wd, settings.response_timeout, shield=deferred)
    with deferred():
        kept = store.responses.keep_output(number, check.script, ended.exit_code, ended.output)
    return CheckResult(check, ended.exit_code, ended.output, kept.name)
