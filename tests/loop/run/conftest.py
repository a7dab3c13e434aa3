"""Projects for the tests of a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stub.project import Project, project_in
from tests.stub.simulated import SimulatedProject, simulated_project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SimulatedProject]:
    with simulated_project(tmp_path) as made:
        yield made


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Project]:
    """A project whose runs are processes."""
    with project_in(tmp_path) as made:
        yield made
