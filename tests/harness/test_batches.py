"""The short form of `make fleet` with SQLite, and that its judge sees what is wrong."""

from harness.batches import plan as kinds
from harness.batches.judge import NOBODY, judge, late_pushes, overlaps
from harness.batches.plan import KINDS, POSTGRESQL, SQLITE, Batch, Fault, plan_for
from harness.batches.run import BatchOutcome, run
from harness.batches.scene import scene_of

TASK = "add-a-greeting-1f2e3d4c"


def test_no_fault_loses_or_doubles_a_task() -> None:
    plan = Batch(0, SQLITE, 1, (1,), (Fault(kinds.SLOT_KILLED, 3, 0.0, 0, 0.0),))
    outcome = BatchOutcome(0, SQLITE, str(plan))
    with scene_of(plan) as scene:
        run(scene, outcome)
        assert not outcome.violations, outcome.tell()
        assert not outcome.not_tried
        (task,) = scene.numbers
        branch = f"refs/heads/quintet/{task}"
        scene.queue.project.git("update-ref", branch, "refs/heads/main")
        scene.rows("INSERT INTO turns (task, new) SELECT task, new FROM turns WHERE new = 'SUCCESS'")
        complaints = "\n".join(judge(scene))
        scene.queue.project.git("update-ref", "-d", branch)
        assert f"the branch quintet/{task} is not there" in "\n".join(judge(scene))
    assert f"{task} has not ended 1 times" in complaints
    assert f"quintet/{task} has changed: []" in complaints
    assert f"quintet/{task} is not at the commit of the result" in complaints


def test_the_judge_sees_two_agents_at_once_unless_one_was_frozen() -> None:
    worked = [
        ["alone", "10.0", TASK, "tester", "/a/", "1"],
        ["beside", "10.5", TASK, "tester", "/b/", "2", "/a/", "1"],
    ]
    assert len(list(overlaps(worked, [], 5.0))) == 1
    assert list(overlaps(worked, [("/a/", 8.0, 9.0)], 5.0)) == []
    assert len(list(overlaps(worked, [("/a/", 1.0, 5.0)], 5.0))) == 1
    assert len(list(overlaps(worked, [("/c/", 8.0, 9.0)], 5.0))) == 1


def test_the_judge_sees_a_push_of_a_slot_that_has_lost_its_task() -> None:
    state, branch = f"refs/quintet/{TASK}/state", f"refs/heads/quintet/{TASK}"
    pushed = [["1.0", slot, "/a/", "0", "1", ref] for slot, ref in (("7", state), (NOBODY, state), ("8", state))]
    assert list(late_pushes(pushed)) == []
    assert len(list(late_pushes([*pushed, ["2.0", "7", "/a/", "1", "2", branch]]))) == 1
    assert list(late_pushes([*pushed, ["2.0", "7", "/a/", "1", "2", branch.replace("1f", "2e")]])) == []


def test_a_seed_has_one_plan_and_seeds_in_a_row_have_every_fault() -> None:
    for database in (POSTGRESQL, SQLITE):
        plans = [plan_for(seed, database) for seed in range(10)]
        assert plans == [plan_for(seed, database) for seed in range(10)]
        assert {fault.kind for plan in plans for fault in plan.faults} == set(KINDS[database])
