"""What passes by itself is waited for and repeated; what does not, counts. A simulated clock."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quintet.api.status import FailureKind
from quintet.config import Settings
from quintet.errors import AgentError, RunError, TurnFailure
from quintet.loop import journal
from quintet.loop.decide.steps import Ask
from quintet.loop.run.recovery import LIMIT_PAUSES, LIMIT_SLACK, LOOK_SECONDS, MOST_REPLACEMENTS, PAUSES, Recovery
from quintet.roles import ANALYST, PROGRAMMER
from tests.stub.fake import FakeClock, store_in

STEP = Ask(ANALYST, 1)
LIMIT, RATE = FailureKind.USAGE_LIMIT, FailureKind.RATE_LIMIT


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Scene:
    def __init__(self, **settings: float) -> None:
        self.clock = FakeClock()
        self.store = store_in(Path.cwd())
        self.events = self.store.events
        given = replace(Settings(wd=Path("/")), **settings)  # type: ignore[arg-type]
        self.recovery = Recovery(given, self.clock, self.store)

    def fail(self, kind: FailureKind, resets_at: float | None = None, step: Ask = STEP) -> float:
        """A turn fails; how long that was waited out."""
        begun = self.clock.now()
        self.recovery.wait_out(step, TurnFailure("analyst: its turn has failed: no", kind, resets_at))
        return self.clock.now() - begun


@pytest.mark.parametrize("kind", [FailureKind.SERVER_ERROR, FailureKind.CONNECTION, FailureKind.OTHER])
def test_a_failed_turn_is_repeated_three_times_with_growing_pauses(kind: FailureKind) -> None:
    scene = Scene()
    assert tuple(scene.fail(kind) for _ in PAUSES) == PAUSES
    assert tuple(sorted(PAUSES)) == PAUSES
    assert len(PAUSES) == 3
    with pytest.raises(RunError, match="its turn has failed: no; so have 3 repetitions"):
        scene.fail(kind)
    told = [event for event in scene.events if isinstance(event, journal.TurnFailed)]
    assert [(event.number, event.pause, event.step) for event in told] == [
        (number, pause, STEP.key) for number, pause in enumerate(PAUSES, 1)
    ]


def test_every_step_counts_for_itself() -> None:
    scene = Scene()
    for step in (STEP, Ask(PROGRAMMER, 1), Ask(ANALYST, 1, 2)):
        assert [scene.fail(FailureKind.OTHER, step=step) for _ in PAUSES] == list(PAUSES)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (FailureKind.LOGIN, r"log in there \(quintet attach analyst\)"),
        (FailureKind.MODEL, r"name another \(agents.analyst.model\)"),
    ],
)
def test_what_only_the_user_can_mend_is_not_tried_again(kind: FailureKind, advice: str) -> None:
    scene = Scene()
    with pytest.raises(TurnFailure, match=f"analyst: its turn has failed: no; {advice}"):
        scene.fail(kind)
    assert (scene.clock.now(), scene.events) == (0.0, [])


def test_a_limit_is_waited_for_until_its_end() -> None:
    scene = Scene()
    assert scene.fail(LIMIT, 5 * 3600.0) == 5 * 3600.0 + LIMIT_SLACK
    (told,) = scene.events
    assert isinstance(told, journal.LimitReached)
    assert told.until == datetime.fromtimestamp(5 * 3600 + LIMIT_SLACK, UTC).isoformat(timespec="seconds")
    assert scene.store.restored >= 5 * 3600 / LOOK_SECONDS, "what agents delete meanwhile is put back"


def test_a_limit_is_not_counted_as_a_failure() -> None:
    scene = Scene()
    for number in range(1, 9):
        scene.fail(LIMIT, number * 600.0)
    assert scene.fail(FailureKind.OTHER) == PAUSES[0]


def test_a_limit_without_a_known_end_is_tried_now_and_then() -> None:
    scene = Scene()
    waits = [scene.fail(LIMIT) for _ in range(5)]
    assert waits == [*LIMIT_PAUSES, LIMIT_PAUSES[-1], LIMIT_PAUSES[-1]]


def test_a_limit_that_has_ended_is_tried_at_once_but_not_again_and_again() -> None:
    scene = Scene()
    scene.clock.sleep(1000.0)
    assert scene.fail(LIMIT, 500.0) == 0.0
    assert scene.fail(LIMIT, 500.0) >= LIMIT_PAUSES[0]


def test_one_passing_429_costs_two_seconds() -> None:
    scene = Scene()
    assert scene.fail(RATE) == PAUSES[0] == 2.0
    (told,) = scene.events
    assert isinstance(told, journal.TurnFailed)
    assert (told.kind, told.number, told.pause) == ("rate_limit", 1, 2.0)


def test_a_rate_limit_that_lasts_becomes_a_limit() -> None:
    scene = Scene()
    assert [scene.fail(RATE) for _ in range(6)] == [*PAUSES, *LIMIT_PAUSES]
    kinds = [type(event) for event in scene.events]
    assert kinds == [journal.TurnFailed] * 3 + [journal.LimitReached] * 3


def test_rate_limits_and_other_failures_are_counted_apart() -> None:
    scene = Scene()
    for pause in PAUSES:
        assert scene.fail(RATE) == pause
    assert [scene.fail(FailureKind.SERVER_ERROR) for _ in PAUSES] == list(PAUSES)


def test_a_rate_limit_is_repeated_when_it_says_so_but_not_sooner_than_an_overload() -> None:
    scene = Scene()
    assert scene.fail(RATE, scene.clock.wall() + 30.0) == pytest.approx(30.0)
    assert scene.fail(RATE, scene.clock.wall() + 1.5) == PAUSES[1]
    assert scene.fail(RATE, scene.clock.wall() - 5.0) == PAUSES[2]
    assert scene.fail(RATE, scene.clock.wall() + 1.5) == LIMIT_PAUSES[0], "short waits have not helped"


def test_a_rate_limit_that_names_an_end_far_away_is_a_limit() -> None:
    scene = Scene()
    assert scene.fail(RATE, scene.clock.wall() + 3600.0) == 3600.0 + LIMIT_SLACK
    assert isinstance(scene.events[0], journal.LimitReached)
    with pytest.raises(RunError, match="MAX_LIMIT_WAIT"):
        Scene(max_limit_wait=60.0).fail(RATE, 3600.0)


def test_who_waits_for_no_limit_has_three_repetitions_of_a_rate_limit() -> None:
    scene = Scene(max_limit_wait=0.0)
    assert [scene.fail(RATE) for _ in PAUSES] == list(PAUSES)
    with pytest.raises(RunError, match="MAX_LIMIT_WAIT"):
        scene.fail(RATE)


def test_nobody_waits_longer_than_allowed() -> None:
    scene = Scene(max_limit_wait=3600.0)
    with pytest.raises(RunError, match=r"until 1970-01-01T02:00:00\+00:00 .*MAX_LIMIT_WAIT \(3600 s\)"):
        scene.fail(LIMIT, 7200.0)
    assert scene.clock.now() == 0.0, "it is said at once, not after an hour"
    scene.fail(LIMIT, 3000.0)
    with pytest.raises(RunError, match="MAX_LIMIT_WAIT"):
        scene.fail(LIMIT, 6000.0)
    assert Scene(max_limit_wait=3600.0).fail(LIMIT, 3000.0, Ask(PROGRAMMER, 1)) > 3000


def test_a_terminal_is_replaced_twice_in_a_step() -> None:
    scene = Scene()
    lost = AgentError("the terminal is gone")
    for step in (STEP, Ask(PROGRAMMER, 1)):
        for _ in range(MOST_REPLACEMENTS):
            scene.recovery.count_replacement(step, lost)
        with pytest.raises(RunError, match="the terminal is gone; so were the 2 that replaced it"):
            scene.recovery.count_replacement(step, lost)
