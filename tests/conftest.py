"""The option `--scenarios`."""

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
