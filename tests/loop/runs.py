"""A whole run in memory: the flow and the prompts, with replies from a script instead of agents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quintet.config import Settings
from quintet.loop.decide.checks import CheckOutcome
from quintet.loop.decide.flow import apply, first_state
from quintet.loop.decide.flow import next_step as following
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.state import Again, State, TerminalRef, When
from quintet.loop.decide.steps import (
    Ask,
    AskedPerson,
    ChecksEnded,
    Closed,
    Dispatched,
    Finished,
    FollowUp,
    FollowUpEnded,
    FollowUpResult,
    Marked,
    NoReply,
    Outcome,
    PersonAnswered,
    Replied,
    Verify,
    WaitForPerson,
)
from quintet.loop.decide.task import Task
from quintet.loop.journal import Event
from quintet.roles import ROLES, Phase, Role

TASK = Task("EXPLORE SUMMARY\nwith two lines", "SCENARIO: run it\nand look")
WD = Path("/project")

ANALYST_NOTES = "- Artifacts: read\n- P1 traceability: whole\n- Downstream contract: none\n- Handoff: concrete"
PROGRAMMER_NOTES = "- Code: read\n- Tests: all green\n- Risk: low\n- Issues: none left"


def approval(phase: Phase = Phase.ANALYST) -> str:
    """A review that passes every gate from the right cycle on."""
    notes = ANALYST_NOTES if phase is Phase.ANALYST else PROGRAMMER_NOTES
    return f"REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n{notes}\nRequired changes:\n- none"


REVISE = "REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n- Handoff: unclear\nRequired changes:\n- say which file"
PASS = "RESULT: PASS\nEVIDENCE:\n- ./run: exit code 0"
FAIL = "RESULT: FAIL\nEVIDENCE:\n- ./run: exit code 3, expected 0"


def settings(**changes: object) -> Settings:
    """Settings for a run in a project that need not exist."""
    return Settings(wd=WD, **changes)  # type: ignore[arg-type]


def new_state(config: Settings, **changes: object) -> State:
    """The state of a new run with five terminals."""
    terminals = {role.name: TerminalRef(f"t-{role.name}", "codex") for role in ROLES}
    return replace(first_state(config, "run-1"), terminals=terminals, **changes)  # type: ignore[arg-type]


@dataclass
class Played:
    """What a run came to."""

    state: State
    end: Finished
    asked: list[Ask] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    before: list[State] = field(default_factory=list)
    """the state that each prompt was built from"""
    events: list[Event] = field(default_factory=list)
    verified: int = 0

    @property
    def roles(self) -> list[str]:
        return [ask.role.name for ask in self.asked]

    def prompt_of(self, role: str, number: int = 0) -> str:
        return [prompt for ask, prompt in zip(self.asked, self.prompts, strict=True) if ask.role.name == role][number]


Reply = Callable[[Ask], str | Replied | None]


def play(
    state: State,
    config: Settings,
    reply: Reply,
    *,
    exit_code: int = 0,
    red: int = 1,
    pause: Callable[[State], State] = lambda state: state,
    people: Sequence[PersonAnswered] = (),
) -> Played:
    """Go from step to step until the run is over. `pause` stands where a run may stop and be resumed.

    The checks end with `exit_code`, before the first prompt with `red`. `people` is what is said at the gates.
    """
    words = iter(people)
    played = Played(state, Finished(state.final_status))
    for _ in range(most_steps(config)):
        step = following(state, config)
        if isinstance(step, Finished):
            played.state, played.end = apply(state, step, Closed(state.sequence), config)[0], step
            return played
        outcome: Outcome
        if isinstance(step, Verify):
            played.verified += step.when is When.AFTER_TEST
            code = red if step.when is When.START else exit_code
            outcome = ChecksEnded((CheckOutcome(step.checks[0], code, "output of the command"),))
        elif isinstance(step, WaitForPerson):
            outcome = next(words) if state.waiting else AskedPerson(1000.0)
        elif isinstance(step, FollowUp):
            outcome = FollowUpEnded(FollowUpResult.DONE) if step.mark else Marked("a mark")
        else:
            played.asked.append(step)
            played.before.append(state)
            played.prompts.append(Prompts(config, TASK, state).build(step))
            state = pause(apply(state, step, Dispatched(len(played.asked)), config)[0])
            assert following(state, config) == step, "a dispatched step is still the one to wait for"
            assert Prompts(config, TASK, state).build(step) == played.prompts[-1]
            answer = reply(step)
            outcome = NoReply() if answer is None else Replied(answer) if isinstance(answer, str) else answer
        state, events = apply(state, step, outcome, config)
        played.events += events
        state = pause(state)
    raise AssertionError("the run does not end within its limits")


def most_steps(config: Settings) -> int:
    """The longest run that the limits allow: a worker and twice its reviewer, the tester twice, and the checks."""
    pair = 3 * config.max_review_cycles
    gates = (pair + 2) * len(config.approve)
    return pair + config.max_rounds * (pair + 4) + 2 + 2 * gates


def scripted(**replies: str | list[str]) -> Reply:
    """Replies by the name of the output; of a list one after the other, the last for ever."""
    queues = {name: [texts] if isinstance(texts, str) else list(texts) for name, texts in replies.items()}

    def reply(step: Ask) -> str:
        queue = queues.get(step.role.output, [])
        if not queue:
            return default_reply(step)
        return queue.pop(0) if len(queue) > 1 else queue[0]

    return reply


def default_reply(step: Ask) -> str:
    """What a good agent replies."""
    if step.role.reviews:
        return approval(step.role.phase)
    return PASS if step.role.phase is Phase.TESTER else f"## Files changed\n{step.role} did {step.key}\n"


def of(role: Role, *replies: Replied | None) -> Reply:
    """These replies of a role, one after the other, the last for ever; all others reply well."""
    queue = list(replies)

    def reply(step: Ask) -> str | Replied | None:
        if step.role is not role:
            return default_reply(step)
        return queue.pop(0) if len(queue) > 1 else queue[0]

    return reply


def run_once(reply: Reply, **changes: object) -> Played:
    """A run of one round, in which the first review may approve."""
    config = settings(**({"min_review_cycles_before_approval": 1, "max_rounds": 1} | changes))
    return play(new_state(config), config, reply)


def asked(played: Played, role: Role) -> list[Again]:
    """Why a role was asked once more, for each of its turns."""
    return [step.again for step in played.asked if step.role is role]
