"""Gates: a run waits for a person after the specification, or after PASS."""

from quintet.loop import journal
from quintet.loop.decide.flow import next_step
from quintet.loop.decide.prompts import SENT_BACK
from quintet.loop.decide.state import Gate, Status, Turn
from quintet.loop.decide.steps import PersonAnswered, WaitForPerson
from quintet.roles import ANALYST, PROGRAMMER, ROLES, Phase
from tests.loop.runs import Played, default_reply, new_state, play, settings

ONE_PASS = [role.name for role in ROLES]
YES = PersonAnswered(True, "ann")
NO = PersonAnswered(False, "ann", "name the file")


def played(*people: PersonAnswered, **changes: object) -> Played:
    config = settings(**({"min_review_cycles_before_approval": 1, "approve": ("spec", "result")} | changes))
    return play(new_state(config), config, default_reply, people=people)


def test_two_gates_that_are_approved_change_nothing_else() -> None:
    run = played(YES, YES)
    assert run.end.status is Status.PASS
    assert run.roles == ONE_PASS
    assert run.state.approved == {"spec": "ann", "result": "ann"}
    told = [(event.event, event.gate) for event in run.events if isinstance(event, journal.ApprovalAsked)]
    assert told == [("approval_asked", "spec"), ("approval_asked", "result")]


def test_without_the_setting_nobody_is_waited_for() -> None:
    assert played(approve=()).roles == ONE_PASS


def test_a_specification_that_is_sent_back_goes_to_the_analyst_with_the_notes_above_any_review() -> None:
    run = played(NO, YES, YES)
    assert run.roles == ["analyst", "peer_analyst", *ONE_PASS]
    words = f"{SENT_BACK}\nname the file\n"
    assert [words in prompt for prompt in run.prompts] == [False, False, True, True, False, False, False]
    assert run.prompt_of(ANALYST.name, 1).startswith(words)
    assert run.end.status is Status.PASS
    assert len({ask.key for ask in run.asked}) == len(run.asked), "a step that is done again has another name"


def test_a_result_that_is_sent_back_goes_to_the_programmer_and_costs_no_round() -> None:
    run = played(YES, NO, YES, max_rounds=1)
    assert run.roles == [*ONE_PASS, "programmer", "peer_programmer", "tester"]
    assert "name the file" in run.prompt_of(PROGRAMMER.name, 1)
    assert run.state.current_round == 1
    assert run.end.status is Status.PASS


def test_the_person_is_asked_after_the_checks_and_before_the_commit() -> None:
    config = settings(approve=("result",), verify_cmd="true", post_git_commit=True)
    state = new_state(config, current_phase=Phase.TESTER, turn=Turn.PASSED)
    assert next_step(state, config) == WaitForPerson(Gate.RESULT)


def test_a_run_that_begins_with_the_programmer_has_no_specification_to_approve() -> None:
    run = played(start_agent="programmer", approve=("spec",))
    assert run.roles == ["programmer", "peer_programmer", "tester"]


def test_the_end_of_the_wait_is_told() -> None:
    run = played(YES, YES, approve_timeout=60.0)
    asked = next(event for event in run.events if isinstance(event, journal.ApprovalAsked))
    assert asked.until == "1970-01-01T00:17:40+00:00"


def test_what_a_person_said_outlives_the_reviews_that_follow() -> None:
    config = settings(min_review_cycles_before_approval=2, approve=("result",))
    run = play(new_state(config), config, default_reply, people=(NO, NO, YES))
    again = [
        prompt for ask, prompt in zip(run.asked, run.prompts, strict=True) if ask.sent_back and ask.role is PROGRAMMER
    ]
    assert len(again) == 4, "two cycles, twice"
    assert all("name the file" in prompt for prompt in again)
    assert run.state.rejection == ""
