"""The task file: an explore summary for those who build, a scenario test for the one who tests."""

import re
from dataclasses import dataclass
from typing import Final

from quintet.config import Settings
from quintet.errors import TaskError
from quintet.loop.markup import normalise

EXPLORE_HEADER: Final = "*** ORIGINAL EXPLORE SUMMARY ***"
SCENARIO_HEADER: Final = "*** SCENARIO TEST ***"
_HEADERS = (EXPLORE_HEADER, SCENARIO_HEADER)


@dataclass(frozen=True)
class Task:
    """What the user wants."""

    explore_summary: str
    scenario_test: str


def parse_task(text: str, source: str = "the prompt") -> Task:
    """Split a task at its two header lines, whichever comes first."""
    lines = normalise(text).split("\n")
    places: dict[str, int] = {}
    for number, line in enumerate(lines):
        header = line.rstrip()
        if header in _HEADERS:
            if header in places:
                raise TaskError(
                    f'{source}: the line "{header}" stands twice, in lines {places[header] + 1} and {number + 1}'
                )
            places[header] = number
    found = {header: _between(lines, places, header) for header in _HEADERS if header in places}
    for header in _HEADERS:
        if header not in found:
            raise TaskError(f'{source}: the section "{header}" is missing{_near_miss(lines, header)}')
        if not found[header]:
            raise TaskError(f'{source}: the section "{header}" is empty; write something below that line')
    return Task(found[EXPLORE_HEADER], found[SCENARIO_HEADER])


def given_task(settings: Settings) -> Task:
    """The task that the settings name."""
    return parse_task(settings.prompt, settings.prompt_file or "the prompt")


def saved_task(prompt: str, settings: Settings) -> Task:
    """The task of a saved run, or the given one where a damaged state has lost it."""
    try:
        return parse_task(prompt, "the saved run's prompt")
    except TaskError:
        if not settings.prompt.strip():
            raise
        return given_task(settings)


def _between(lines: list[str], places: dict[str, int], header: str) -> str:
    begin = places[header] + 1
    end = min((place for place in places.values() if place >= begin), default=len(lines))
    return "\n".join(lines[begin:end]).strip()


def _near_miss(lines: list[str], header: str) -> str:
    words = re.sub(r"[^A-Z]", "", header)
    for number, line in enumerate(lines, 1):
        if len(line) < 2 * len(header) and re.sub(r"[^A-Z]", "", line.upper()) == words:
            return f"; line {number} has to read exactly so"
    return "; add that line and the text below it"
