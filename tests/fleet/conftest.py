"""The queue for the tests of the fleet."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def queue() -> Iterator[Any]:
    """A `Fleet` without tasks. It is imported by name, so that the pure tests of this folder stay in the fast lane."""
    with importlib.import_module("tests.fleet.rig").fleet() as made:
        yield made
