"""Gates: where a run waits for the word of a person."""

from contextlib import suppress
from typing import Final

from quintet.config import Settings
from quintet.errors import Paused, RunError
from quintet.loop.decide.steps import AskedPerson, PersonAnswered, WaitForPerson
from quintet.loop.record.people import Decision, People, now
from quintet.loop.record.store import RunStore
from quintet.loop.run.clock import Clock
from quintet.program import program

LOOK_SECONDS: Final = 1.0
"""time between two looks for an answer"""
NOBODY: Final = "nobody in time"
"""who has decided, where the time was up"""


def wait_for_person(
    step: WaitForPerson, settings: Settings, store: RunStore, clock: Clock
) -> AskedPerson | PersonAnswered:
    """Ask for a person's word; where that was done before, wait for it."""
    if store.state.waiting != step.gate and not store.people.decision(step.key):
        return AskedPerson(clock.wall())
    end = store.state.waiting_since + settings.approve_timeout if settings.approve_timeout else float("inf")
    while True:
        if found := store.people.decision(step.key):
            return PersonAnswered(found.approved, found.by, found.notes)
        if by := store.people.wants_pause():
            raise Paused(f"paused by {by}")
        if clock.wall() >= end:
            return _without_a_word(step, settings, store.people)
        clock.sleep(min(LOOK_SECONDS, max(end - clock.wall(), 0.01)))


def _without_a_word(step: WaitForPerson, settings: Settings, people: People) -> PersonAnswered:
    """What the settings say, unless a person is first at the last moment."""
    if settings.approve_default == "stop":
        waited = f"nobody has approved the {step.gate} within {settings.approve_timeout:g} s (APPROVE_TIMEOUT)"
        raise RunError(f"{waited}; {program()} approve, then {program()} run")
    approved = settings.approve_default == "approve"
    notes = "" if approved else "Nobody has approved it in time: look at it once more."
    default = Decision(approved, NOBODY, now(), notes)
    with suppress(RunError):
        people.decide(step.key, default)
    said = people.decision(step.key) or default
    return PersonAnswered(said.approved, said.by, said.notes)
