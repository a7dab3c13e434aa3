"""The queue for the tests of the fleet."""

from collections.abc import Iterator

import pytest

from tests.fleet.rig import Fleet, fleet


@pytest.fixture
def queue() -> Iterator[Fleet]:
    with fleet() as made:
        yield made
