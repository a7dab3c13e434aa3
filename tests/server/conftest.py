from collections.abc import Iterator

import pytest

from tests.server.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.end()
