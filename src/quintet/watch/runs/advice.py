"""What the user can do about a run that has not passed."""

import shlex
from pathlib import Path

from quintet.layout import TMP
from quintet.loop.decide.state import When
from quintet.program import program
from quintet.roles import PROGRAMMER, TESTER
from quintet.watch.runs.formatting import one_line
from quintet.watch.runs.model import FAIL, GONE, STOPPED, Run

NEVER_APPROVED = "never approved"


class Code(str):
    """A part of a step that is a command or a path."""

    __slots__ = ()


Advice = tuple[str, ...]
"""one step, in parts: text and code"""


def advise(run: Run, undo: tuple[str, ...] = ()) -> list[Advice]:
    """The steps in their order; none for a PASS or a running run."""
    if run.status == FAIL:
        return _after_fail(run, undo)
    if run.status == STOPPED:
        return [(f"It stopped: {one_line(run.reason)}.",), *_go_on(run)]
    if run.status == GONE:
        return [("Its process has ended unexpectedly: it was killed, or the machine went down.",), *_go_on(run)]
    return []


def step_text(step: Advice) -> str:
    """A step as one text."""
    return "".join(step)


def _go_on(run: Run) -> list[Advice]:
    """How to resume the run, with the command."""
    if run.superseded:
        return [("Another run has begun since, so this one cannot be resumed. Its files are in ", _folder(run))]
    if not run.resumable:
        nothing = "There is nothing to resume: it stopped before its agents had done anything. Fix the cause, then "
        return [(f"{nothing}start it again: ", Code(_with_task(run)), f" in {_home(run)}.")]
    terminals = " Its terminals were ended; new ones get the same step." if run.cleaned_up else ""
    rest = f" in {_home(run)}, with the same settings.{terminals}"
    if run.max_tokens:
        return [("Resume it with a higher token limit: ", Code(higher_limit(run)), rest)]
    return [("Resume it: ", Code(_resume(run)), rest)]


def _home(run: Run) -> str:
    """Where the user starts a run and goes on with it."""
    return run.project or run.wd or "the project"


def _resume(run: Run) -> str:
    """The command that goes on with a run; several may be unfinished in worktrees, and the task says which."""
    return _with_task(run) if run.project else f"{program()} run"


def _with_task(run: Run) -> str:
    """The command that starts a run with the same task."""
    task = run.task_file.removeprefix(f"{_home(run)}/")
    return f"{program()} run {shlex.quote(task)}" if task else f"{program()} run"


def higher_limit(run: Run) -> str:
    """The command that resumes the run and allows the same number of tokens once more."""
    used = max(run.tokens.total if run.tokens else 0, run.max_tokens)
    return f"MAX_TOKENS={used + run.max_tokens} {_resume(run)}"


def _after_fail(run: Run, undo: tuple[str, ...]) -> list[Advice]:
    steps: list[Advice] = [_evidence(run)]
    if any(warning.kind == NEVER_APPROVED for warning in run.warnings):
        steps.append(("A phase continued without an approved review: read the open notes of its reviews too.",))
    if run.cleaned_up:
        steps.append(("The terminals were ended with the run (CLEANUP_ON_EXIT). The replies are in ", _folder(run)))
    else:
        ask = Code(f"{program()} attach {PROGRAMMER}")
        steps.append(("Ask the programmer in its terminal, which still has the whole conversation: ", ask))
    there = f"cd {shlex.quote(run.wd)} && " if _has_worktree(run) else ""
    again = Code(f"{there}START_AGENT={PROGRAMMER} PROMPT_FILE=task.md {program()} run")
    added = ". Add the evidence to the explore summary in the task file first. MAX_ROUNDS sets the number of rounds."
    steps.append(("Try again from the present code: ", again, added))
    if there:
        steps.append(("Or throw its branch away: ", Code(f"{program()} discard --force {run.id}")))
    if undo:
        steps.append(("Or undo the changes: ", Code(" && ".join(undo))))
    return steps


def _evidence(run: Run) -> Advice:
    tests = run.of_role(TESTER)
    check = run.checks[-1] if run.checks else None
    if check and check.failed_round and check.round == run.round:
        after = check.when == When.AFTER_TEST
        why = "The tester said PASS, but a check failed." if after else "A check failed before the tester was asked."
        return (f"{why} Read the output of ", Code(one_line(check.title)), ": ", Code(_path(run, check.file)))
    file = next((item.reply_file for item in reversed(tests) if item.reply_file), "")
    if not file:
        return ("There is no evidence of a test.",)
    return ("Read the evidence of the last test: ", Code(_path(run, file)), ". Is the scenario test itself right?")


def _has_worktree(run: Run) -> bool:
    """Whether the run works in a worktree that is still there."""
    return bool(run.project) and Path(run.wd).is_dir()


def _folder(run: Run) -> Code:
    return Code(_path(run))


def _path(run: Run, file: str = "") -> str:
    """The archive of a run or a file in it, from where the user is."""
    return str(Path(run.wd if _has_worktree(run) else "", TMP, run.id, one_line(file)))
