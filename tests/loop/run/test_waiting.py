"""The rules of waiting, with a simulated clock: seed 003 and SPEC.md, "Waiting for a response"."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest

from quintet.api.models import Failure, RefusedHost
from quintet.api.status import FailureKind, TerminalStatus
from quintet.config import Settings
from quintet.errors import (
    AgentError,
    NoResponse,
    OutcomeUnknown,
    PassingFault,
    Refused,
    ResponseTimeout,
    TerminalGone,
    TurnFailure,
)
from quintet.loop.decide.steps import Ask
from quintet.loop.decide.task import Task
from quintet.loop.journal import (
    GuardReleased,
    HostRefused,
    Noted,
    PermissionAsked,
    Reminded,
    ServerFault,
    StatusDoubted,
    Warned,
)
from quintet.loop.record.responses import EXCERPT, LONGEST_REPLY
from quintet.loop.run.actions import ActionLedger
from quintet.loop.run.guarding import TreeGuard
from quintet.loop.run.retry import retry
from quintet.loop.run.tokens import TokenLedger
from quintet.loop.run.turn import AgentTurn
from quintet.loop.run.waiting import Reply, Request, ResponseWaiter
from quintet.roles import ANALYST, TESTER
from tests.stub.fake import (
    COMPLETED,
    ERROR,
    IDLE,
    PROCESSING,
    UNKNOWN,
    WAITING,
    FakeAgent,
    FakeClock,
    changes,
    store_in,
)

pytestmark = pytest.mark.slow
Kind = TypeVar("Kind")
POLL = 2.0
GRACE = 30.0
LIMIT = 300.0
REMINDER = "write the file"
SLACK = POLL + 0.5
"""what the spacing of the polls may add to a rule's time"""


@dataclass
class Scene:
    """One agent that waits for nothing but the test's plan."""

    wd: Path
    settings: Settings
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.api = FakeAgent(self.clock)
        self.store = store_in(self.wd, self.settings)
        self.events = self.store.events
        self.responses = self.store.responses
        self.path = self.responses.path_of(ANALYST)
        ledgers = (TokenLedger(self.settings), ActionLedger(self.clock))
        self.waiter = ResponseWaiter(self.api, self.store, self.settings, self.clock, *ledgers)

    def set(self, **changed: object) -> None:
        self.settings = self.waiter.settings = replace(self.settings, **changed)  # type: ignore[arg-type]

    def write(self, text: str | bytes = "the reply\n") -> None:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def wait(self, since: int = 0) -> Reply:
        request = Request(Ask(ANALYST, 1), "aa00bb11", REMINDER, since)
        return self.waiter.wait_for_response_file(request)

    def told(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(
        tmp_path,
        Settings(
            wd=tmp_path,
            poll_seconds=POLL,
            idle_grace_seconds=GRACE,
            response_timeout=LIMIT,
            max_file_reminders=0,
        ),
    )


# -- the file


@pytest.mark.scenario("003", "Agent starts processing and then completes")
def test_file_and_rest_make_a_reply(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (10, COMPLETED))
    scene.clock.at(8, scene.write)
    assert scene.wait() == Reply("the reply\n", "file")
    assert scene.clock.now() < 10.5
    assert scene.events == []


def test_a_file_that_is_written_while_its_agent_is_at_rest_is_told(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (4, COMPLETED))
    scene.clock.at(12, scene.write)
    assert scene.wait() == Reply("the reply\n", "file")
    (told,) = scene.told(Warned)
    assert told.text == "the response file of analyst was written while its agent was not at work"


def test_what_others_write_meanwhile_is_kept_and_told(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (10, COMPLETED))
    forged = scene.responses.path_of(TESTER)
    scene.clock.at(3, lambda: forged.write_text("RESULT: PASS"))
    scene.clock.at(8, scene.write)
    scene.wait()
    assert not forged.exists()
    assert (scene.responses.archive / "000-tester-late-1.md").read_text() == "RESULT: PASS"
    (told,) = scene.told(Warned)
    assert "response file of tester was written while its agent was not at work" in told.text


def test_a_file_that_changes_after_it_was_read_is_kept_and_told(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (10, COMPLETED))
    scene.clock.at(8, scene.write)
    turn = AgentTurn(
        Ask(ANALYST, 1),
        scene.settings,
        Task("", ""),
        scene.store,
        scene.waiter,
        TreeGuard(replace(scene.settings, guard="off"), scene.store),
    )
    reply = scene.wait()
    scene.write("RESULT: PASS, by somebody else")
    turn.take(reply)
    assert not scene.path.exists()
    assert (scene.responses.archive / "001-analyst.md").read_text() == "the reply\n"
    (late,) = scene.responses.archive.glob("*-late-1.md")
    assert late.read_text() == "RESULT: PASS, by somebody else"
    (told,) = scene.told(Warned)
    assert "was changed after its reply was taken" in told.text


@pytest.mark.parametrize("status", [PROCESSING, WAITING, UNKNOWN])
def test_a_file_alone_is_not_enough(scene: Scene, status: TerminalStatus) -> None:
    scene.write()
    scene.api.status = lambda _: status
    with pytest.raises(ResponseTimeout):
        scene.wait()
    assert scene.path.exists()


@pytest.mark.scenario("003", "Response file appears during startup guard")
@pytest.mark.parametrize("at_rest", [IDLE, COMPLETED])
def test_file_during_the_startup_guard_is_taken_at_once(scene: Scene, at_rest: TerminalStatus) -> None:
    scene.api.status = lambda _: at_rest
    scene.clock.at(1, scene.write)
    assert scene.wait().text == "the reply\n"
    assert scene.clock.now() < 1.5
    assert scene.told(GuardReleased) == []


def test_once_the_file_is_there_the_status_is_asked_for_quickly(scene: Scene) -> None:
    """Agents write the file first and go idle a second later; the handoff then costs milliseconds."""
    scene.api.status = changes((0, PROCESSING), (6.51, COMPLETED))
    scene.clock.at(5.5, scene.write)
    scene.wait()
    assert scene.clock.now() - 6.51 < 0.1


def test_an_agent_that_writes_early_is_not_asked_without_end(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (250, COMPLETED))
    scene.clock.at(1, scene.write)
    scene.wait()
    assert len(scene.api.asked_at) < 1000


def test_poll_seconds_spaces_the_requests_while_there_is_no_file(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (60, COMPLETED))
    scene.clock.at(60, scene.write)
    scene.wait()
    before = [moment for moment in scene.api.asked_at if moment < 60]
    gaps = [later - earlier for earlier, later in pairwise(before)]
    assert min(gaps) >= POLL - 1e-6
    assert len(before) >= 60 / (POLL + 0.1)


def test_the_file_is_looked_for_far_more_often_than_the_status(scene: Scene) -> None:
    scene.set(poll_seconds=60.0)
    scene.api.status = changes((0, PROCESSING), (5, COMPLETED))
    scene.clock.at(10, scene.write)
    scene.wait()
    assert scene.clock.now() < 10.5


@pytest.mark.parametrize("blank", ["", "\n", " \r\n\t\n", "\ufeff"])
def test_a_file_that_says_nothing_is_no_reply(scene: Scene, blank: str) -> None:
    scene.write(blank)
    scene.api.status = changes((0, PROCESSING), (4, COMPLETED))
    with pytest.raises(NoResponse):
        scene.wait()


def test_a_growing_file_is_read_only_when_it_has_stopped(scene: Scene) -> None:
    """Another half arrives every 10 ms of an agent that is at rest by its status."""
    parts = [f"line {number}\n" for number in range(200)]

    def grow(upto: int) -> Callable[[], None]:
        return lambda: scene.write("".join(parts[:upto]))

    scene.api.status = changes((0, PROCESSING), (1, COMPLETED))
    for number in range(1, 201):
        scene.clock.at(2 + number / 100, grow(number))
    assert scene.wait().text == "".join(parts)


def test_half_a_file_of_an_agent_with_an_old_status_is_not_taken(scene: Scene) -> None:
    """The status may be that of the turn before, so an idle agent that was not seen at work gets more time."""
    scene.api.status = lambda _: COMPLETED
    scene.clock.at(2, lambda: scene.write("half"))
    scene.clock.at(2.1, lambda: scene.write("half and half"))
    assert scene.wait().text == "half and half"


def test_a_file_from_before_the_dispatch_is_never_taken(scene: Scene) -> None:
    scene.write("the answer of the turn before")
    since = scene.responses.file_time(ANALYST) + 1_000_000_000
    scene.api.status = changes((0, PROCESSING), (4, COMPLETED))
    with pytest.raises(NoResponse):
        scene.wait(since)


def test_a_file_from_after_the_dispatch_is_taken_in_place_of_an_older_one(scene: Scene) -> None:
    scene.write("old")
    since = scene.responses.file_time(ANALYST)
    os.utime(scene.path, ns=(since - 1, since - 1))
    scene.api.status = changes((0, PROCESSING), (4, COMPLETED))
    scene.clock.at(10, lambda: scene.write("new"))
    assert scene.wait(since).text == "new"


@pytest.mark.parametrize("kind", ["symlink", "dangling", "directory", "fifo"])
def test_what_is_no_regular_file_is_no_reply(scene: Scene, kind: str) -> None:
    outside = scene.wd / "secret.txt"
    outside.write_text("RESULT: PASS")
    match kind:
        case "symlink":
            scene.path.symlink_to(outside)
        case "dangling":
            scene.path.symlink_to(scene.wd / "nowhere")
        case "directory":
            scene.path.mkdir()
        case "fifo":
            os.mkfifo(scene.path)
    scene.api.status = changes((0, PROCESSING), (4, COMPLETED))
    with pytest.raises(NoResponse):
        scene.wait()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xe9\nRESULT: PASS\n", "caf\ufffd\nRESULT: PASS\n"),
        (b"\xef\xbb\xbfRESULT: PASS\r\nEVIDENCE:\r\n", "RESULT: PASS\nEVIDENCE:\n"),
        (b"one\rtwo\n", "one\ntwo\n"),
        (b"nul \x00 byte\n", "nul \x00 byte\n"),
    ],
)
def test_bytes_are_made_readable(scene: Scene, data: bytes, text: str) -> None:
    scene.api.status = changes((0, PROCESSING), (4, COMPLETED))
    scene.clock.at(3, lambda: scene.write(data))
    assert scene.wait().text == text


@pytest.mark.parametrize("lines", [25_000, 25_001], ids=["whole", "excerpt"])
def test_two_megabytes_are_taken_whole_and_more_as_an_excerpt(scene: Scene, lines: int) -> None:
    text = ("x" * 79 + "\n") * lines
    scene.api.status = changes((0, PROCESSING), (4, COMPLETED))
    scene.clock.at(3, lambda: scene.write(text))
    reply = scene.wait()
    assert reply.is_long == (len(text) > LONGEST_REPLY)
    assert (reply.text == text) == (not reply.is_long)
    assert reply.text[:EXCERPT] == text[:EXCERPT]
    assert reply.text[-EXCERPT:] == text[-EXCERPT:]


# -- startup guard and idle grace


@pytest.mark.scenario("003", "Startup timeout releases guard")
@pytest.mark.parametrize("at_rest", [IDLE, COMPLETED])
def test_startup_guard_then_grace_make_two_graces_at_worst(scene: Scene, at_rest: TerminalStatus) -> None:
    scene.api.status = lambda _: at_rest
    with pytest.raises(NoResponse, match="no response file"):
        scene.wait()
    assert 2 * GRACE <= scene.clock.now() < 2 * GRACE + 2 * SLACK
    (released,) = scene.told(GuardReleased)
    assert GRACE <= released.seconds < GRACE + SLACK


@pytest.mark.scenario("003", "Startup guard blocks premature grace timer")
def test_the_grace_does_not_begin_before_the_agent_was_seen_at_work(scene: Scene) -> None:
    """Work is seen late, but before the guard gives up: the grace counts from the end of that work."""
    scene.api.status = changes((0, COMPLETED), (25, PROCESSING), (40, COMPLETED))
    with pytest.raises(NoResponse):
        scene.wait()
    assert scene.told(GuardReleased) == []
    assert 40 + GRACE <= scene.clock.now() < 40 + GRACE + 2 * SLACK


@pytest.mark.scenario("003", "waiting_user_answer counts as agent started")
def test_waiting_for_an_answer_counts_as_started(scene: Scene) -> None:
    scene.api.status = changes((0, WAITING), (10, COMPLETED))
    with pytest.raises(NoResponse):
        scene.wait()
    assert scene.told(GuardReleased) == []
    assert scene.clock.now() < 10 + GRACE + 2 * SLACK


def test_unknown_counts_as_not_started(scene: Scene) -> None:
    scene.api.status = changes((0, UNKNOWN), (10, COMPLETED))
    with pytest.raises(NoResponse):
        scene.wait()
    assert len(scene.told(GuardReleased)) == 1
    assert scene.clock.now() >= 2 * GRACE


def test_unknown_counts_as_not_idle(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (10, IDLE), (30, UNKNOWN), (35, IDLE))
    with pytest.raises(NoResponse):
        scene.wait()
    assert scene.clock.now() >= 35 + GRACE


@pytest.mark.scenario("003", "Idle grace resets on processing observation")
def test_the_grace_counts_only_consecutive_idle_polls(scene: Scene) -> None:
    """20 s idle, 4 s at work, over and over: never a grace in one piece."""
    scene.api.status = lambda now: IDLE if now % 24 < 20 and now < 240 else PROCESSING
    scene.clock.at(241, scene.write)
    scene.clock.at(250, lambda: setattr(scene.api, "status", lambda _: COMPLETED))
    assert scene.wait().source == "file"


def test_a_grace_of_nothing_gives_up_at_once(scene: Scene) -> None:
    scene.set(idle_grace_seconds=0.0)
    scene.api.status = lambda _: IDLE
    with pytest.raises(NoResponse):
        scene.wait()
    assert scene.clock.now() < 1


# -- giving up


def test_without_strict_the_screen_is_the_reply(scene: Scene) -> None:
    scene.set(strict_file_handoff=False)
    scene.api.status = changes((0, PROCESSING), (10, IDLE))
    scene.api.output = "RESULT: PASS"
    assert scene.wait() == Reply("RESULT: PASS", "screen")
    assert scene.clock.now() >= 10 + GRACE


def test_an_empty_screen_is_no_reply(scene: Scene) -> None:
    scene.set(strict_file_handoff=False)
    scene.api.status = lambda _: IDLE
    scene.api.output = " \n"
    with pytest.raises(NoResponse):
        scene.wait()


def test_reading_the_screen_outlives_a_passing_fault(scene: Scene) -> None:
    scene.set(strict_file_handoff=False)
    scene.api.status = lambda _: IDLE
    scene.api.output, scene.api.output_faults = "text", [PassingFault("a"), OutcomeUnknown("b")]
    assert scene.wait().text == "text"
    assert scene.api.outputs_read == 3


@pytest.mark.scenario("000", "Timeout with terminal still processing")
@pytest.mark.scenario("003", "Timeout with terminal still processing")
def test_timeout_while_processing(scene: Scene) -> None:
    with pytest.raises(TimeoutError, match=r"aa00bb11.*300 s.*processing"):
        scene.wait()
    assert LIMIT <= scene.clock.now() < LIMIT + SLACK


@pytest.mark.parametrize("strict", [True, False])
def test_timeout_while_idle_goes_by_the_rules_for_idle(scene: Scene, strict: bool) -> None:
    scene.set(idle_grace_seconds=LIMIT * 2, strict_file_handoff=strict)
    scene.api.status = lambda _: IDLE
    scene.api.output = "from the screen"
    if strict:
        with pytest.raises(NoResponse):
            scene.wait()
    else:
        assert scene.wait().text == "from the screen"
    assert LIMIT <= scene.clock.now() < LIMIT + SLACK


@pytest.mark.scenario("000", "Terminal enters error state")
@pytest.mark.scenario("003", "Terminal enters error state")
def test_error_status_is_fatal_at_once(scene: Scene) -> None:
    scene.write()
    scene.api.status = changes((0, PROCESSING), (10, ERROR))
    with pytest.raises(AgentError, match="analyst") as caught:
        scene.wait()
    assert isinstance(caught.value, RuntimeError)
    assert scene.clock.now() < 10 + SLACK


# -- reminders


@pytest.mark.parametrize("reminders", [0, 1, 3])
def test_so_many_reminders_and_no_more(scene: Scene, reminders: int) -> None:
    scene.set(max_file_reminders=reminders)
    scene.api.status = changes((0, PROCESSING), (10, IDLE))
    with pytest.raises(NoResponse):
        scene.wait()
    assert len(scene.api.inputs) == len(scene.told(Reminded)) == reminders


def test_a_reminder_re_arms_guard_and_grace(scene: Scene) -> None:
    scene.set(max_file_reminders=1)
    scene.api.status = changes((0, PROCESSING), (10, IDLE))
    with pytest.raises(NoResponse):
        scene.wait()
    reminded = scene.api.inputs[0][0]
    assert 10 + GRACE <= reminded < 10 + GRACE + 2 * SLACK
    assert reminded + 2 * GRACE <= scene.clock.now() < reminded + 2 * GRACE + 2 * SLACK
    assert len(scene.told(GuardReleased)) == 1


def test_a_reminder_never_re_arms_the_timeout(scene: Scene) -> None:
    scene.set(max_file_reminders=50, response_timeout=200.0)
    scene.api.status = lambda _: IDLE
    with pytest.raises(NoResponse):
        scene.wait()
    assert 200 <= scene.clock.now() < 200 + SLACK


def test_a_reminder_that_may_have_arrived_is_not_sent_twice(scene: Scene) -> None:
    scene.set(max_file_reminders=1)
    scene.api.status = lambda _: IDLE
    scene.api.input_faults = [OutcomeUnknown("dropped")]
    with pytest.raises(NoResponse):
        scene.wait()
    assert len(scene.api.inputs) == 1


# -- permissions


def test_permission_is_given_with_a_cooldown_and_at_most_twenty_times(scene: Scene) -> None:
    scene.set(auto_accept_permissions=True, poll_seconds=0.5)
    scene.api.status = lambda _: WAITING
    with pytest.raises(ResponseTimeout):
        scene.wait()
    given = scene.api.accepted_at
    assert min(later - earlier for earlier, later in pairwise(given)) >= 5.0
    told = [event.accepted for event in scene.told(PermissionAsked)]
    assert told == [True] * 20 + [False], "the user has to answer the next one"
    assert len(given) == 20


def test_without_auto_accept_one_warning_a_turn(scene: Scene) -> None:
    scene.api.status = lambda now: WAITING if now % 10 < 5 else PROCESSING
    with pytest.raises(ResponseTimeout):
        scene.wait()
    (asked,) = scene.told(PermissionAsked)
    assert not asked.accepted
    assert scene.api.inputs == []
    assert scene.api.accepted_at == []


def test_the_next_turn_warns_again(scene: Scene) -> None:
    scene.set(response_timeout=20.0)
    scene.api.status = lambda _: WAITING
    for _ in range(2):
        with pytest.raises(ResponseTimeout):
            scene.wait()
    assert len(scene.told(PermissionAsked)) == 2


def test_a_permission_that_cannot_be_given_now_stops_nothing(scene: Scene) -> None:
    scene.set(auto_accept_permissions=True)
    scene.api.status = changes((0, WAITING), (20, COMPLETED))
    scene.api.input_faults = [PassingFault("refused"), OutcomeUnknown("dropped")]
    scene.clock.at(19, scene.write)
    assert scene.wait().source == "file"
    assert len(scene.api.accepted_at) == 4


def test_a_question_that_no_yes_answers_is_told_once_and_permissions_go_on(scene: Scene) -> None:
    scene.set(auto_accept_permissions=True)
    scene.api.status = changes((0, WAITING), (100, COMPLETED))
    scene.api.input_faults = [Refused("only its user can answer")] * 9
    scene.clock.at(99, scene.write)
    assert scene.wait().source == "file"
    told = [(event.accepted, event.question) for event in scene.events if isinstance(event, PermissionAsked)]
    assert told[0] == (False, True)
    assert set(told[1:]) == {(True, False)}
    assert scene.told(ServerFault) == []


def test_a_question_that_was_answered_meanwhile_is_not_told(scene: Scene) -> None:
    scene.set(auto_accept_permissions=True)
    answered = iter([WAITING])
    scene.api.status = lambda _: next(answered, COMPLETED)
    scene.api.input_faults = [Refused("does not ask anything")]
    scene.write()
    assert scene.wait().source == "file"
    assert len(scene.api.accepted_at) == 1
    assert scene.told(PermissionAsked) == []


# -- faults


@pytest.mark.parametrize("fault", [PassingFault("refused"), OutcomeUnknown("dropped")])
def test_passing_faults_of_a_read_are_outlived(scene: Scene, fault: Exception) -> None:
    scene.api.fault = lambda now: fault if 10 < now < 200 else None
    scene.api.status = changes((0, PROCESSING), (250, COMPLETED))
    scene.clock.at(220, scene.write)
    assert scene.wait().source == "file"
    assert len(scene.told(ServerFault)) == 1


@pytest.mark.parametrize("file_at", [0, 110])
def test_retries_back_off_also_while_a_file_waits(scene: Scene, file_at: float) -> None:
    scene.api.fault = lambda now: PassingFault("refused") if now < 100 else None
    scene.api.status = lambda _: COMPLETED
    scene.clock.at(file_at, scene.write)
    assert scene.wait().source == "file"
    failed = [moment for moment in scene.api.asked_at if moment < 100]
    assert failed[1] < 1, "the first retry is quick"
    assert 15 < len(failed) < 40


def test_a_server_that_stays_away_is_a_timeout(scene: Scene) -> None:
    scene.api.fault = lambda _: PassingFault("refused")
    with pytest.raises(ResponseTimeout):
        scene.wait()
    assert LIMIT <= scene.clock.now() < LIMIT + 10


@pytest.mark.parametrize("fault", [TerminalGone("gone"), Refused("no")])
def test_a_fault_that_does_not_pass_is_fatal(scene: Scene, fault: Exception) -> None:
    scene.api.fault = lambda now: fault if now > 10 else None
    with pytest.raises(type(fault)):
        scene.wait()
    assert scene.clock.now() < 10 + SLACK


def test_idle_time_that_nobody_saw_is_no_grace(scene: Scene) -> None:
    """The first look after an outage begins the count anew: nobody knows what happened in between."""
    scene.api.status = changes((0, PROCESSING), (10, IDLE))
    scene.api.fault = lambda now: PassingFault("away") if 12 < now < 100 else None
    with pytest.raises(NoResponse):
        scene.wait()
    assert scene.clock.now() >= 100 + GRACE


# -- sending


def test_input_that_may_have_arrived_is_never_sent_twice(scene: Scene) -> None:
    scene.api.input_faults = [OutcomeUnknown("dropped")]
    assert scene.waiter.send("aa00bb11", "prompt", "id") is False
    assert len(scene.api.inputs) == 1
    assert len(scene.told(ServerFault)) == 1


def test_input_that_cannot_have_arrived_is_sent_again(scene: Scene) -> None:
    scene.api.input_faults = [PassingFault("refused")] * 4
    assert scene.waiter.send("aa00bb11", "prompt") is True
    assert len(scene.api.inputs) == 5
    assert len(scene.told(ServerFault)) == 1


def test_our_own_server_knows_a_repeated_input_by_its_id(scene: Scene) -> None:
    scene.api.own = True
    scene.api.input_faults = [OutcomeUnknown("dropped")]
    assert scene.waiter.send("aa00bb11", "prompt", "id") is True
    assert len(scene.api.inputs) == 2
    scene.api.input_faults = [OutcomeUnknown("dropped")]
    assert scene.waiter.send("aa00bb11", "no id") is False
    assert len(scene.api.inputs) == 3


def test_a_server_that_refuses_connections_for_ever_is_given_up(scene: Scene) -> None:
    scene.api.input_faults = [PassingFault("refused")] * 10_000
    with pytest.raises(PassingFault):
        scene.waiter.send("aa00bb11", "prompt")
    assert LIMIT - 10 < scene.clock.now() <= LIMIT


def test_the_pauses_between_tries_grow_until_the_time_is_up(scene: Scene) -> None:
    fault, moments = PassingFault("away"), list[float]()

    def fail() -> None:
        moments.append(scene.clock.now())
        raise fault

    with pytest.raises(PassingFault) as caught:
        retry(fail, scene.clock, 60)
    assert caught.value is fault
    pauses = [round(later - earlier, 3) for earlier, later in pairwise(moments)]
    assert pauses[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert scene.clock.now() <= 60


def test_every_look_at_a_status_is_a_chance_to_put_things_back(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (9, COMPLETED))
    scene.clock.at(8, scene.write)
    scene.wait()
    assert scene.store.restored == len(scene.api.asked_at)


def test_a_failed_turn_is_told_at_once_with_its_reason(scene: Scene) -> None:
    scene.set(max_file_reminders=1)
    ends = datetime(2026, 3, 1, tzinfo=UTC)
    scene.api.status = changes((0, PROCESSING), (10, COMPLETED))
    scene.api.failure = lambda _: Failure(kind=FailureKind.USAGE_LIMIT, text="no more", resets_at=ends)
    with pytest.raises(TurnFailure, match=r"analyst .*: its turn has failed: no more") as failed:
        scene.wait()
    assert (failed.value.kind, failed.value.resets_at) == (FailureKind.USAGE_LIMIT, ends.timestamp())
    assert scene.clock.now() < 10 + SLACK, "nobody waits for an answer that will not come"
    assert scene.api.inputs == []


def test_a_failed_turn_that_has_left_its_response_has_done_its_work(scene: Scene) -> None:
    scene.api.status = changes((0, PROCESSING), (10, COMPLETED))
    scene.api.failure = lambda _: Failure(kind=FailureKind.CONNECTION, text="cut off")
    scene.clock.at(9, scene.write)
    assert scene.wait().text == "the reply\n"


def test_an_interrupted_turn_is_not_repeated(scene: Scene) -> None:
    """Whoever interrupts an agent means to tell it something."""
    scene.api.status = changes((0, PROCESSING), (10, COMPLETED), (20, PROCESSING), (40, COMPLETED))
    scene.api.failure = lambda now: Failure(kind=FailureKind.INTERRUPTED, text="by the user") if now < 20 else None
    scene.clock.at(39, scene.write)
    assert scene.wait().text == "the reply\n"


# -- doubts


def test_notes_and_doubts_about_an_agent_are_told_once_in_a_turn(scene: Scene) -> None:
    scene.api.note = lambda now: "no message for 60 s" if 5 < now < 20 else ""
    scene.api.doubt = lambda now: "its screen shows none" if 5 < now < 20 else ""
    scene.clock.at(30.0, scene.write)
    scene.api.status = changes((0.0, PROCESSING), (31.0, COMPLETED))
    scene.wait()
    (noted,), (doubted,) = scene.told(Noted), scene.told(StatusDoubted)
    assert noted.text == "analyst: no message for 60 s"
    assert (doubted.role, doubted.status, doubted.text) == ("analyst", "processing", "its screen shows none")


# -- refused hosts


def refused(times: int, *hosts: str) -> tuple[RefusedHost, ...]:
    return tuple(RefusedHost(host=host, port=443, times=times, allow=f"{host}:443") for host in hosts)


def test_a_refused_host_is_told_once_and_counted_at_the_end_of_the_turn(scene: Scene) -> None:
    scene.api.refused = lambda now: refused(int(now), "registry.example") if now > 1 else ()
    scene.clock.at(30.0, scene.write)
    scene.api.status = changes((0.0, PROCESSING), (31.0, COMPLETED))
    scene.wait()
    first, last = scene.told(HostRefused)
    assert (first.role, first.host, first.port) == ("analyst", "registry.example", 443)
    assert first.times < 10 < last.times
    assert last.allow == "SANDBOX_DOMAINS=api.openai.com,chatgpt.com,auth.openai.com,registry.example:443"


def test_names_without_end_are_told_in_one_line(scene: Scene) -> None:
    scene.api.refused = lambda _: refused(1, *(f"n{number}.evil.test" for number in range(60)))
    scene.clock.at(8, scene.write)
    scene.api.status = changes((0, PROCESSING), (10, COMPLETED))
    scene.wait()
    assert len(scene.told(HostRefused)) == 20
    (told,) = scene.told(Warned)
    assert told.text == "the sandbox has refused more than 20 hosts to analyst"
