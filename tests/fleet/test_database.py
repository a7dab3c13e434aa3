"""Changes of the queue count only for the process that has the task."""

from tests.fleet.rig import fleet


def test_a_process_that_has_lost_its_task_cannot_change_it() -> None:
    with fleet() as queue:
        task = queue.task(queue.add("a"))
        assert not queue.database.change(task.model_copy(update={"token": "of another start"}), takeovers=1)
        assert queue.database.change(task, takeovers=1)
