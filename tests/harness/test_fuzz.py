"""The short form of `make fuzz`: the same properties with a few examples each, always the same ones."""

import pytest

from harness.fuzz.__main__ import SOURCES
from harness.fuzz.properties import ALL, Property
from harness.fuzz.requests import PATHS, application


@pytest.mark.parametrize("one", ALL, ids=str)
def test_whatever_comes_in(one: Property) -> None:
    one.hold(examples=10)


def test_every_source_has_properties() -> None:
    assert {one.check.__module__ for one in ALL} == {source.__name__ for source in SOURCES}


def test_every_route_of_the_server_is_asked() -> None:
    assert {path for path in application().paths if not path.startswith("/static/")} <= set(PATHS)
