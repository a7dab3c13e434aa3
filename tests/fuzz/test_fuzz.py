"""The short form of `make fuzz`: the same properties with a few examples each, always the same ones."""

import pytest

from tests.fuzz import agents, files, journals, records, requests, screens, words
from tests.fuzz.properties import ALL, Property
from tests.fuzz.requests import test_every_route_is_asked

__all__ = ["agents", "files", "journals", "records", "requests", "screens", "test_every_route_is_asked", "words"]


@pytest.mark.parametrize("one", ALL, ids=str)
def test_whatever_comes_in(one: Property) -> None:
    one.hold(examples=10)
