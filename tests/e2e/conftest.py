"""A queue in a real PostgreSQL, for the tests of several machines."""

from collections.abc import Iterator

import pytest

from tests.fleet.postgres import Postgres, postgres
from tests.fleet.rig import Fleet, fleet_with_remote
from tests.workspace.worktree_runs import building_story


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as made:
        yield made


@pytest.fixture
def queue(server: Postgres) -> Iterator[Fleet]:
    """A queue without tasks and workers; those of the test before may have been killed, and their rows are left."""
    with fleet_with_remote(server) as made:
        for task in made.database.tasks():
            made.database.delete(task.id)
        for worker in made.database.workers():
            made.database.forget_worker(worker.name)
        made.project.script(building_story(think=1.0))
        yield made
