"""Which slots are silent: by the watcher's own clock, and never right after the database was away."""

from quintet.fleet.tasks import QueuedTask, TaskStatus
from quintet.fleet.worker import Rest, Watch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def running(name: str, mark: float, owner: str = "desk/1") -> QueuedTask:
    place = f"slot {owner}"
    return QueuedTask(id=name, title="", repository="", status=TaskStatus.RUNNING, owner=owner, place=place, mark=mark)


def test_a_row_that_does_not_change_gets_older_by_the_own_clock() -> None:
    clock = Clock()
    watch = Watch(1000.0, clock)
    assert watch.unchanged([running("a", 5.0), running("b", 5.0)]) == {"a": 0.0, "b": 0.0}
    clock.now = 100.0
    assert watch.unchanged([running("a", 5.0), running("b", 6.0)]) == {"a": 100.0, "b": 0.0}
    clock.now = 150.0
    assert watch.unchanged([running("a", 5.0, owner="attic/1"), running("b", 6.0)]) == {"a": 0.0, "b": 50.0}


def test_a_row_that_was_gone_and_one_after_an_outage_begin_anew() -> None:
    clock = Clock()
    watch = Watch(1000.0, clock)
    watch.unchanged([running("a", 5.0), running("b", 5.0)])
    clock.now = 100.0
    watch.unchanged([running("b", 5.0)])
    assert watch.unchanged([running("a", 5.0)]) == {"a": 0.0}
    clock.now = 200.0
    watch.forget()
    assert watch.unchanged([running("a", 5.0)]) == {"a": 0.0}


def test_what_stood_still_between_two_looks_begins_anew() -> None:
    clock = Clock()
    watch = Watch(60.0, clock)
    watch.unchanged([running("a", 5.0)])
    clock.now = 60.0
    assert watch.unchanged([running("a", 5.0)]) == {"a": 60.0}
    clock.now = 190.0
    assert watch.unchanged([running("a", 5.0)]) == {"a": 0.0}


def test_a_worker_waits_for_longer_after_each_task_that_could_not_go_on_there() -> None:
    clock = Clock()
    rest = Rest(60.0, clock)
    rest.failed()
    assert rest.reason == ""
    waits = []
    for _ in range(5):
        clock.now = rest.until
        assert rest.reason == ""
        rest.failed()
        waits.append(rest.until - clock.now)
    assert waits == [60.0, 120.0, 240.0, 480.0, 480.0]
    clock.now = rest.until
    rest.gave()
    assert rest.reason.startswith("the last 6 tasks could not go on here; it takes the next one at ")
    rest.worked()
    rest.gave()
    assert rest.reason == ""
