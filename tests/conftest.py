"""The options `--scenarios` and `--unit`, an environment without the machine's, a state directory for each test."""

import gc
import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings as hypothesis_settings

from tests import hermetic
from tests.fast_lane import forbid_processes_and_sockets, in_fast_lane
from tests.scenarios import listing

hypothesis_settings.register_profile("unit", max_examples=5, deadline=None)
hypothesis_settings.register_profile("test", max_examples=15, deadline=None)
hypothesis_settings.register_profile("fuzz", max_examples=500, deadline=None)
hypothesis_settings.load_profile("test")

hermetic.enter()  # before any test module is imported, because some look at the environment then
MEMORY: Final = Path("/dev/shm")
"""a file system without a disk, where there is one: to make and remove thousands of folders on a disk takes seconds"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scenarios", action="store_true", help="list the scenarios of the seeds, each with its tests")
    parser.addoption("--unit", action="store_true", help="only the fast lane: no process, no socket, few examples")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """List the scenarios instead of running anything."""
    if not config.getoption("--scenarios"):
        return None
    print("\n".join(listing()))
    return 0


@pytest.fixture(scope="session")
def state_directories() -> Iterator[Iterator[Path]]:
    """Paths for the state directories of tests, short enough for a socket; most tests need none, so none is made."""
    with tempfile.TemporaryDirectory(prefix="q-", ignore_cleanup_errors=True) as folder:
        yield (Path(folder) / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def state_directory(state_directories: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test write into the user's own state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(next(state_directories)))


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tests that are ended end what they have started
    if config.getoption("--unit"):
        hypothesis_settings.load_profile("unit")
        if os.access(MEMORY, os.W_OK):
            tempfile.tempdir = str(MEMORY)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In the fast lane leave out what is marked as slow, and hold the rest to the rule."""
    gc.freeze()  # modules and tests stay, so there is no use in looking through them again and again
    gc.set_threshold(50_000)
    if config.getoption("--unit"):
        forbid_processes_and_sockets()
        items[:] = [item for item in items if item.get_closest_marker("slow") is None]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what is not in the fast lane, nor the conftest of a folder in which nothing is."""
    if not config.getoption("--unit"):
        return None
    modules = collection_path.rglob("test_*.py") if collection_path.is_dir() else [collection_path]
    return None if any(module.match("test_*.py") and in_fast_lane(module) for module in modules) else True
