"""A queue for each test."""

from collections.abc import Iterator

import pytest

from tests.fleet.rig import Fleet, fleet


@pytest.fixture
def queue() -> Iterator[Fleet]:
    """A queue in a file, with a project that has no remote, and without a worker."""
    with fleet() as made:
        yield made
