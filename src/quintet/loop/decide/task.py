"""The task file: an explore summary for those who build, a scenario test for the one who tests."""

from dataclasses import dataclass
from typing import Final

from quintet.config import Settings
from quintet.errors import TaskError
from quintet.loop.decide.lint import EXPLORE_HEADER, SCENARIO_HEADER, lint, sections_of
from quintet.program import program

__all__ = ["EXPLORE_HEADER", "SCENARIO_HEADER", "Task", "given_task", "parse_task", "saved_task", "title_of"]

_HEADERS: Final = "***"


@dataclass(frozen=True)
class Task:
    """What the user wants."""

    explore_summary: str
    scenario_test: str


def parse_task(text: str, source: str = "the prompt") -> Task:
    """Split a task at its two header lines; what `quintet lint` calls an error is one here."""
    errors = [finding for finding in lint(text) if finding.is_error]
    if errors:
        more = f" (and {len(errors) - 1} more; {program()} lint shows them all)" if errors[1:] else ""
        raise TaskError(f"{source}: {errors[0].text}{more}")
    found = sections_of(text)
    return Task(found.body(EXPLORE_HEADER), found.body(SCENARIO_HEADER))


def given_task(settings: Settings) -> Task:
    """The task that the settings name."""
    if not settings.prompt.strip():
        ways = f'{program()} run TASK.md names one, {program()} new "what you want" begins one'
        raise TaskError(f"there is no task: {ways}")
    return parse_task(settings.prompt, settings.prompt_file or "the prompt")


def saved_task(prompt: str, settings: Settings) -> Task:
    """The task of a saved run, or the given one where a damaged state has lost it."""
    try:
        return parse_task(prompt, "the saved run's prompt")
    except TaskError:
        if not settings.prompt.strip():
            raise
        return given_task(settings)


def title_of(task: str) -> str:
    """The first line of a task that is no header."""
    lines = (line.strip(" #*-") for line in task.splitlines() if not line.startswith(_HEADERS))
    return next((line for line in lines if line), "")[:160]
