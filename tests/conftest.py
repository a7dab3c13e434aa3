"""The options `--scenarios` and `--unit`, and a state directory for each test."""

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from tests.fast_lane import forbid_processes_and_sockets, in_fast_lane
from tests.scenarios import listing

hypothesis_settings.register_profile("unit", max_examples=5, deadline=None)
hypothesis_settings.register_profile("test", max_examples=50, deadline=None)
hypothesis_settings.register_profile("fuzz", max_examples=500, deadline=None)
hypothesis_settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scenarios", action="store_true", help="list the scenarios of the seeds, each with its tests")
    parser.addoption("--unit", action="store_true", help="only the fast lane: no process, no socket, few examples")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """List the scenarios instead of running anything."""
    if not config.getoption("--scenarios"):
        return None
    print("\n".join(listing()))
    return 0


@pytest.fixture(autouse=True)
def state_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no test write into the user's own state directory; the path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="q-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--unit"):
        hypothesis_settings.load_profile("unit")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked as slow, and hold the rest to the rule."""
    if config.getoption("--unit"):
        forbid_processes_and_sockets()
        gc.freeze()  # modules and tests stay, so there is no use in looking through them again and again
        gc.set_threshold(50_000)
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what is not in the fast lane."""
    if not config.getoption("--unit") or not collection_path.match("test_*.py") or in_fast_lane(collection_path):
        return None
    return True
