"""One build and one installation for all tests of the wheel."""

from pathlib import Path

import pytest

from tests.wheel.package import Package


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return Package.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def command(package: Package, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`quintet`, installed from the wheel into an empty environment."""
    return package.install(tmp_path_factory.mktemp("venv") / "venv")
