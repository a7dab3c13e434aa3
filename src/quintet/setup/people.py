"""What people tell a run from outside: approve, send back, leave a note, pause."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quintet.errors import RunError
from quintet.loop.decide.state import GATES, Gate, State, Status
from quintet.loop.decide.steps import WaitForPerson
from quintet.loop.record.lock import is_locked
from quintet.loop.record.people import LONGEST_TEXT, Decision, People, PersonNote, now, readable, who
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.saved_state import find_state_file
from quintet.program import program
from quintet.roles import ANALYST, BY_NAME, PEER_ANALYST, PROGRAMMER, Phase
from quintet.watch.runs.folders import find_run, project_run_folders, read_state

Tell = Callable[[str], None]


@dataclass(frozen=True)
class _Told:
    """A run that somebody tells something."""

    id: str
    tree: Path
    state: State
    people: People

    @property
    def at_work(self) -> bool:
        return is_locked(self.tree)

    def say_what_follows(self, text: str, tell: Tell) -> None:
        tell(f"{text} The run goes on." if self.at_work else f"{text} It is not at work: {program()} run goes on.")


def approve(wd: Path, run: str | None, tell: Tell, *, step: str = "") -> None:
    """Let a run go on that waits for a person; `step` is the one that the person means, where that is known."""
    told, gate = _at_gate(wd, run, step)
    told.people.decide(gate.key, Decision(approved=True, by=who(), at=now()))
    told.say_what_follows(f"Approved the {GATES[gate.gate]} of {told.id}.", tell)


def reject(wd: Path, run: str | None, notes: str, tell: Tell, *, step: str = "") -> None:
    """Send back what a run waits with, and say why."""
    told, gate = _at_gate(wd, run, step)
    told.people.decide(gate.key, Decision(approved=False, by=who(), at=now(), notes=checked_text(notes)))
    role = ANALYST if gate.gate is Gate.SPEC else PROGRAMMER
    told.say_what_follows(f"Sent the {GATES[gate.gate]} of {told.id} back to the {role}.", tell)


def leave_note(wd: Path, run: str | None, text: str, role: str, tell: Tell) -> None:
    """Leave a note that travels with the next prompt of a role, or of whoever is asked next."""
    told = _find(wd, run)
    is_over = told.state.current_phase is not Phase.ANALYST and told.state.waiting != Gate.SPEC
    if role and is_over and BY_NAME[role] in (ANALYST, PEER_ANALYST):
        raise RunError(f"the {role} will not be asked again; leave it to another role, or to whoever is next")
    told.people.add_note(PersonNote(checked_text(text), who(), now(), role))
    told.say_what_follows(f"Noted for {role or 'whoever is asked next'}, with the next prompt.", tell)


def pause(wd: Path, run: str | None, tell: Tell) -> None:
    """Let a run stop after its current turn."""
    told = _find(wd, run)
    if not told.at_work:
        raise RunError(f"{told.id} is not at work; {program()} run goes on with it")
    told.people.ask_to_pause(who())
    tell(f"{told.id} stops after the current turn; {program()} run goes on with it.")


def _find(wd: Path, run: str | None) -> _Told:
    """The run that is meant; it has not ended."""
    folder = find_run(wd, run)
    tree = folder.parents[1]
    state = read_state(find_state_file(tree))
    record = RunRecord(tree, folder.name)
    if state is None or state.run_id != folder.name or not record.is_known:
        raise RunError(f"{folder.name} is over, and another run has begun since" if state else f"{folder.name} is over")
    if state.final_status is not Status.RUNNING:
        raise RunError(f"{folder.name} is over: {state.final_status}")
    return _Told(folder.name, tree, state, People(record.folder))


def _at_gate(wd: Path, run: str | None, step: str) -> tuple[_Told, WaitForPerson]:
    told = _find(wd, run or _newest_that_waits(wd))
    if not told.state.waiting:
        raise RunError(f"{told.id} does not wait for anybody; {program()} status shows what it does")
    gate = WaitForPerson(Gate(told.state.waiting), told.state.sent_back)
    if step not in ("", gate.key):
        raise RunError(f"{told.id} waits with something else by now: look at it once more")
    return told, gate


def _newest_that_waits(wd: Path) -> str | None:
    """The run that a person means who names none: not always the newest, for another one may be at work."""
    for folder in project_run_folders(wd):
        state = read_state(find_state_file(folder.parents[1]))
        if state and state.run_id == folder.name and state.waiting and state.final_status is Status.RUNNING:
            return folder.name
    return None


def checked_text(text: str) -> str:
    """What a person has written, as it is kept; RunError where it is nothing or too much."""
    text = readable(text).strip()
    if not text:
        raise RunError("there is nothing in it; say what has to be different")
    if len(text) > LONGEST_TEXT:
        raise RunError(f"it is longer than {LONGEST_TEXT:,} characters; put it into a file and name that")
    return text
