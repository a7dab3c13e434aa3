"""A run, folded from its journal."""

from dataclasses import replace
from pathlib import Path

import pytest

from quintet.api.models import TokenCount
from quintet.loop import journal
from quintet.loop.record.journal_file import Journal
from quintet.roles import ANALYST, PEER_ANALYST, TESTER
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.handoffs import Handoff, PricedTokens
from quintet.watch.runs.model import GONE, run_from_events, timestamp, tokens_of
from tests.watch.events import START, at, failed_run, finished, reviewed, sent, started, taken, verdict_of

BEGAN = START.timestamp()


def test_handoffs_have_their_times_verdicts_and_tokens() -> None:
    run = run_from_events(failed_run())
    assert [handoff.role.name for handoff in run.handoffs] == ["analyst", "peer_analyst", "programmer", "tester"]
    review = run.handoffs[1]
    assert (review.sent - BEGAN, review.taken) == (20, BEGAN + 30)
    assert review.verdict is not None
    assert (review.verdict.word, review.verdict.good) == ("REVISE", False)
    assert review.verdict.evidence == ("artifact", "handoff")
    assert review.tokens == PricedTokens(input=500, cached=250, output=10, unpriced=510)
    assert review.reminders == 1
    assert run.status == "FAIL"
    assert run.seconds() == 51
    assert run.current is None


def test_the_remarks_are_those_that_a_reader_should_know() -> None:
    kinds = [warning.kind for warning in run_from_events(failed_run()).warnings]
    assert kinds == ["forced release", "reminder", "never approved"]


def test_the_current_handoff_is_the_one_without_a_reply() -> None:
    run = run_from_events([*started(), sent(10, ANALYST)])
    assert run.current is run.handoffs[0]
    assert run.seconds(BEGAN + 100) == 100
    assert run_from_events([*started(), sent(10, ANALYST), taken(12, ANALYST)]).current is None


def test_the_time_in_which_a_run_was_stopped_does_not_count() -> None:
    events = [
        *started(),
        sent(10, ANALYST),
        at(20, journal.RunStopped(reason="interrupted by SIGINT")),
        at(1000, journal.RunResumed(run_id="20260102-030405-abcdef", step="1-1-analyst")),
        taken(1010, ANALYST),
    ]
    stopped, resumed = run_from_events(events[:-2]), run_from_events(events)
    assert (stopped.status, stopped.reason) == ("STOPPED", "interrupted by SIGINT")
    assert resumed.status == "RUNNING"
    assert resumed.seconds() == 30
    assert len(resumed.handoffs) == 1
    assert resumed.handoffs[0].taken == BEGAN + 1010
    assert resumed.worked(resumed.handoffs[0]) == 20


def test_the_clock_of_a_turn_does_not_count_the_time_in_which_the_run_was_stopped() -> None:
    events = [
        *started(),
        sent(10, ANALYST),
        at(20, journal.RunStopped(reason="interrupted by SIGINT")),
        at(1000, journal.RunResumed(run_id="20260102-030405-abcdef", step="1-1-analyst")),
    ]
    run = run_from_events(events)
    assert run.worked(run.handoffs[0], BEGAN + 1030) == 10 + 30
    gone = replace(run, status=GONE)
    assert gone.worked(gone.handoffs[0], BEGAN + 9000) == 10, "the clock of a run that is gone stands still"
    assert gone.seconds(BEGAN + 9000) == 20


def test_a_turn_without_a_reply_ends_when_the_run_goes_on() -> None:
    again = at(30, journal.PromptSent(step="1-1-tester-again", role="tester", round=1, cycle=1, characters=9))
    used = TokenCount(input=70, cached=0, output=5)
    missed = at(60, journal.ReplyMissed(step="1-1-tester-again", role="tester", tokens=used))
    rest = [verdict_of(60, "FAIL"), sent(61, ANALYST, 2), finished(500, "FAIL", 2)]
    events = [*started(), sent(10, TESTER), taken(30, TESTER), again]
    run = run_from_events([*events, missed, *rest])
    turn = run.handoffs[1]
    assert (turn.taken, turn.missed, run.worked(turn)) == (BEGAN + 60, True, 30)
    assert turn.tokens == PricedTokens(input=70, output=5, unpriced=75)
    assert [warning.kind for warning in run.warnings] == ["no reply"]
    assert run.handoffs[2].taken == BEGAN + 500, "nor is a turn open after the end"
    told_nothing = run_from_events([*events, *rest])
    assert told_nothing.worked(told_nothing.handoffs[1]) == 31, "also where the journal tells nothing of it"


def test_a_run_that_was_killed_does_not_count_the_night() -> None:
    events = [*started(), sent(10, ANALYST), at(9000, journal.RunResumed(run_id="x", step="")), taken(9010, ANALYST)]
    assert run_from_events(events).seconds() <= 10 + 60 + 10


def test_a_prompt_that_is_sent_again_is_one_handoff() -> None:
    run = run_from_events([*started(), sent(10, ANALYST), sent(15, ANALYST), taken(20, ANALYST)])
    assert [(handoff.sent - BEGAN, handoff.taken) for handoff in run.handoffs] == [(15, BEGAN + 20)]


def test_the_users_command_has_the_last_word() -> None:
    verified = at(31, journal.Verified(round=1, command="make check", exit_code=2))
    run = run_from_events([*started(), sent(10, TESTER), taken(30, TESTER), verdict_of(30, "PASS"), verified])
    verdict = run.handoffs[0].verdict
    assert verdict is not None
    assert (verdict.word, verdict.good, verdict.command) == ("FAIL", False, "make check")


def test_what_comes_after_the_end_does_not_make_a_run_longer() -> None:
    run = run_from_events([*started(), finished(10, "PASS"), at(70, journal.Warned(text="notification not sent"))])
    assert run.seconds() == 10
    assert run.warnings[0].kind == "warning"


def test_tokens_add_up_and_cost_only_where_it_is_known() -> None:
    def added(*parts: PricedTokens) -> PricedTokens | None:
        return tokens_of(Handoff("a", TESTER, 1, 1, 0.0, tokens=tokens) for tokens in parts)

    one, two = PricedTokens(input=1, cached=2, output=3), PricedTokens(input=10, cached=20, output=30)
    assert added(one, two) == PricedTokens(input=11, cached=22, output=33)
    part = added(PricedTokens(input=1, cost=0.5), PricedTokens(input=4, unpriced=4))
    assert part is not None
    assert (part.cost, part.unpriced, part.partly_priced) == (0.5, 4, True)
    assert not PricedTokens(input=1, cost=0.5).partly_priced
    assert not PricedTokens(unpriced=4).partly_priced, "without any price there is no cost, and none of a part"
    assert PricedTokens(input=5, cached=3, output=2).total == 7
    assert tokens_of([]) is None


@pytest.mark.parametrize("number", range(len(failed_run())))
def test_a_journal_that_ends_anywhere_can_be_read(number: int) -> None:
    run = run_from_events(failed_run()[: number + 1])
    assert run.ended == timestamp(failed_run()[number].at)
    assert run.round == 1


def test_an_approval_is_good() -> None:
    run = run_from_events([*started(), sent(1, PEER_ANALYST), taken(2, PEER_ANALYST), reviewed(2, True)])
    assert run.verdicts[0].verdict
    assert run.verdicts[0].verdict.good


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-23:59", "1969-12-31T00:00:00Z", "9999-12-31", "soon", ""]
)
def test_a_time_that_no_clock_can_show_is_none(time: str) -> None:
    assert timestamp(time) == 0.0


@pytest.mark.parametrize("number", ["1e999", "NaN", "Infinity", "9" * 400])
def test_a_line_with_a_number_that_nobody_can_show_is_passed_over(tmp_path: Path, number: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(
        f'{{"event":"guard_released","role":"tester","seconds":{number}}}\n'
        f'{{"event":"prompt_sent","step":"s","role":"tester","round":{number},"cycle":1,"characters":1}}\n'
        f'{{"event":"reply_taken","step":"s","role":"tester","characters":1,"source":"file","cost":{number}}}\n'
        '{"event":"noted","text":"still there"}\n'
    )
    assert [line_for(event) for event in Journal(path).read()] == ["still there"]


def test_a_terminal_of_a_role_that_nobody_has_is_not_kept() -> None:
    stray = journal.TerminalCreated(role="cook", terminal="0badc0de", provider="codex", seconds=1)
    assert run_from_events([*started(), at(1, stray)]).terminals == run_from_events(started()).terminals


@pytest.mark.parametrize("text", [r'"\ud800"', "[" * 900 + "]" * 900])
def test_an_event_of_a_later_version_that_cannot_be_told_is_passed_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(f'{{"event":"later","at":"","text":{text}}}\n{{"event":"noted","text":"still there"}}\n')
    assert [line_for(event) for event in Journal(path).read()][-1] == "still there"
