"""The list of deliberate breaks fits the code and the tests, so `make breaks` can use all of it."""

import pytest

from harness.breaks import BREAKS, ROOT, Break, occurrences
from tests.test_rooms import MAY_IMPORT


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: one.name)
def test_a_break_can_be_applied_and_names_tests_that_exist(one: Break) -> None:
    assert occurrences(one) == 1
    assert one.text != one.replacement
    assert [name for name in one.tests if not (ROOT / "tests" / name).exists()] == []


def test_every_room_has_a_break_and_every_break_a_name_of_its_own() -> None:
    inner = {room for room in MAY_IMPORT if room.startswith(("loop.", "server."))}
    rooms = {*MAY_IMPORT, "cli"} - {"loop", "server"} - {room for room in MAY_IMPORT if "." in room} | inner
    files = [one.file.removesuffix(".py").replace("/", ".") for one in BREAKS]
    assert [room for room in sorted(rooms) if not any(f"{file}.".startswith(f"{room}.") for file in files)] == []
    assert len({one.name for one in BREAKS}) == len(BREAKS)
