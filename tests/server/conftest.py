import shutil
from collections.abc import Iterator

import pytest

from tests.eventually import eventually, show_processes
from tests.server.rig import LiveServer, Rig


@pytest.fixture(scope="session")
def live_server() -> Iterator[LiveServer]:
    """One server for all tests of this worker; no process may outlive it."""
    live = LiveServer()
    yield live
    live.close()
    nothing = show_processes([])
    eventually(
        lambda: show_processes([str(live.root)]), "the end of all terminals", wanted=lambda shown: shown == nothing
    )


@pytest.fixture
def rig(live_server: LiveServer) -> Iterator[Rig]:
    """A test's part of the shared server. The test may not stop the server or leave it broken."""
    rig = Rig(live_server)
    yield rig
    live_server.end_sessions()
    shutil.rmtree(rig.root, ignore_errors=True)


@pytest.fixture
def own_rig() -> Iterator[Rig]:
    """A server of its own, for a test that stops, breaks or configures it."""
    live = LiveServer()
    rig = Rig(live)
    yield rig
    live.close()
    shutil.rmtree(rig.root, ignore_errors=True)
