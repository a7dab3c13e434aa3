"""The option `--scenarios`, and a state directory for each test."""

import tempfile
from collections.abc import Iterator

import pytest

from tests.scenarios import listing


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scenarios", action="store_true", help="list the scenarios of the seeds, each with its tests")


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
