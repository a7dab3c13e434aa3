"""What somebody can do who finds a run that is not a PASS."""

import shlex

from quintet.layout import TMP
from quintet.program import program
from quintet.roles import PROGRAMMER, TESTER
from quintet.watch.runs.formatting import one_line
from quintet.watch.runs.model import FAIL, GONE, STOPPED, Run, tokens_of

NEVER_APPROVED = "never approved"


class Code(str):
    """A part of an advice that is typed, not read."""

    __slots__ = ()


Advice = tuple[str, ...]
"""one step, in parts: words and code"""


def advise(run: Run, undo: tuple[str, ...] = ()) -> list[Advice]:
    """The steps, in the order in which they make sense; none for a PASS or a run at work."""
    if run.status == FAIL:
        return _after_fail(run, undo)
    if run.status == STOPPED:
        return [(f"It stopped because: {one_line(run.reason)}.",), *_go_on(run)]
    if run.status == GONE:
        return [("Its process is gone without a word: it was killed, or the machine went down.",), *_go_on(run)]
    return []


def in_plain(step: Advice) -> str:
    """A step as one text."""
    return "".join(step)


def _go_on(run: Run) -> list[Advice]:
    """How to continue, with the command that does it."""
    if run.left_behind:
        return [("Another run has begun here since, so this one is left behind. What it did is in ", _folder(run))]
    if not run.resumable:
        nothing = "There is nothing to go on with: it stopped before its agents had done anything. Mend that, then "
        return [
            (f"{nothing}start anew: ", Code(_start_anew(run)), f" in {run.wd or 'the project'}, with its settings.")
        ]
    terminals = "; its terminals were ended, so new ones get the same step" if run.cleaned_up else ""
    rest = f" in {run.wd or 'the project'}, with the same settings as before{terminals}."
    if run.max_tokens:
        return [("Give it more tokens, and it goes on where it stopped: ", Code(higher_limit(run)), rest)]
    return [("It goes on where it stopped: ", Code(f"{program()} run"), rest)]


def _start_anew(run: Run) -> str:
    """The command that gives the same task to a new run."""
    task = run.task_file
    if run.wd and task.startswith(f"{run.wd}/"):
        task = task.removeprefix(f"{run.wd}/")
    return f"{program()} run {shlex.quote(task)}" if task else f"{program()} run"


def higher_limit(run: Run) -> str:
    """The command that goes on with as much again as the limit was."""
    tokens = tokens_of(run.handoffs)
    used = max(tokens.total if tokens else 0, run.max_tokens)
    return f"MAX_TOKENS={used + run.max_tokens} {program()} run"


def _after_fail(run: Run, undo: tuple[str, ...]) -> list[Advice]:
    steps: list[Advice] = [_evidence(run)]
    if any(remark.kind == NEVER_APPROVED for remark in run.remarks):
        steps.append(("A phase went on without approval: look at the reviews' open notes too.",))
    if run.cleaned_up:
        steps.append(("The terminals were ended with the run (CLEANUP_ON_EXIT); their handoffs are in ", _folder(run)))
    else:
        ask = Code(f"{program()} attach {PROGRAMMER}")
        steps.append(("Ask the programmer, whose terminal still knows everything: ", ask))
    again = Code(f"START_AGENT={PROGRAMMER} PROMPT_FILE=task.md {program()} run")
    added = ", with the evidence added to the explore summary of the task file. MAX_ROUNDS gives it more rounds."
    steps.append(("Let it try again from the present code: ", again, added))
    if undo:
        steps.append(("Or take the changes back: ", Code(" && ".join(undo))))
    return steps


def _evidence(run: Run) -> Advice:
    tests = run.of_role(TESTER)
    verdict = tests[-1].verdict if tests else None
    if verdict and verdict.command and not verdict.good:
        said = ("The tester said PASS, and your command had the last word. Read what ", Code(one_line(verdict.command)))
        return (*said, " says: ", Code(_path(run, verdict.output_file)))
    file = next((item.reply_file for item in reversed(tests) if item.reply_file), "")
    read = "Read the evidence of the last test: "
    return (
        (read, Code(_path(run, file)), ". Is the scenario test itself right?") if file else (f"{read}there is none.",)
    )


def _folder(run: Run) -> Code:
    return Code(f"{TMP}/{run.id}")


def _path(run: Run, file: str) -> str:
    return f"{TMP}/{run.id}/{one_line(file)}"
