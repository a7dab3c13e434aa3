"""What a machine can check of a task: the `verify` blocks of its scenario test, then the project's own command."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quintet.config import Settings
from quintet.loop.decide.lint import SCENARIO_HEADER, sections_of
from quintet.loop.decide.verify_blocks import find_blocks

RED_STOP: Final = "stop"
RED_OFF: Final = "off"
"""what the setting `red_first` may ask for"""


@dataclass(frozen=True)
class Check:
    """A script of the task, or the project's command."""

    title: str
    """by which people know it: its number among the task's blocks, or the command itself"""
    script: str
    is_block: bool = False

    @property
    def command(self) -> str | tuple[str, ...]:
        """What to run: a shell line, or a program with its arguments."""
        return ("sh", "-e", "-c", self.script) if self.is_block else self.script

    @property
    def words(self) -> str:
        """The check in a sentence."""
        return self.title if self.is_block else f"`{self.title}`"


@dataclass(frozen=True)
class CheckOutcome:
    """How a check has ended."""

    check: Check
    exit_code: int
    output: str = ""
    file: str = ""
    """the output in the archive"""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def evidence(self) -> str:
        """What the programmer is told where it has failed."""
        script = "\n".join(f"    {line}" for line in self.check.script.split("\n"))
        return f"{script}\nIts output:\n{self.output.strip() or '(none)'}"


def task_checks(task: str) -> tuple[Check, ...]:
    """The task's own checks, in the order in which they stand there."""
    found = sections_of(task)
    if not found.has(SCENARIO_HEADER):
        return ()
    blocks = find_blocks(found.lines, found.span(SCENARIO_HEADER)).found
    return tuple(Check(f"verify block {number}", block.script, True) for number, block in enumerate(blocks, 1))


def start_checks(task: str, settings: Settings) -> tuple[Check, ...]:
    """What must not succeed before the work has begun: a project's own command only where the task has no check."""
    return task_checks(task) or all_checks(task, settings)


def all_checks(task: str, settings: Settings) -> tuple[Check, ...]:
    """All that has to agree with a PASS, in the order in which it is run."""
    command = settings.verify_cmd
    title = " ".join(command.split()) if "\n" in command else command
    return (*task_checks(task), *([Check(title, command)] if command else []))


def passes_already(results: Sequence[CheckOutcome]) -> str:
    """That checks prove nothing, because they succeed before anything is done."""
    titles = " and ".join(result.check.words for result in results)
    succeed, prove = ("succeed", "they prove") if results[1:] else ("succeeds", "it proves")
    advice = "" if results[-1].check.is_block else "; a verify block in the scenario test can"
    return f"{titles} {succeed} before anything is done, so {prove} nothing about this task{advice}"


def refuted(why: str, failed: CheckOutcome) -> str:
    """The test report that a failed check stands for."""
    return f"RESULT: FAIL\nEVIDENCE:\n{why} check ended with exit code {failed.exit_code}:\n{failed.evidence}"
