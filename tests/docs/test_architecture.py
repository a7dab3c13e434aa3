"""What the pages for contributors and for the troubled say is in the code."""

import re
from functools import cache

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.test_rooms import MAY_IMPORT

SOURCE = ROOT / "src" / "quintet"
ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")
SYMPTOMS = re.findall(r"^\*\*(.+?)\*\*", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE)
MESSAGES = [message for symptom in SYMPTOMS for message in re.findall(r"`([^`]+)`", symptom)]
VARIABLE = re.compile(r"\.\.\.|[\d.]*\d")
"""what differs from one message to the next"""


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_*]+(?:/|\.py|\.md))`", ARCHITECTURE)
    assert len(named) > 40
    places = (SOURCE, ROOT)
    assert not [name for name in named if not any(list(place.glob(name.rstrip("/"))) for place in places)]


def test_every_room_is_on_the_map_with_its_arrows() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*?) \| .*?\|$", ARCHITECTURE, re.MULTILINE))
    assert rows.keys() == {*MAY_IMPORT, "cli"}
    for room, allowed in MAY_IMPORT.items():
        rooms = {other.partition(".")[0] for other in allowed}
        if room == "setup":
            assert rooms == MAY_IMPORT.keys() - {"setup", "demo"}
        else:
            assert rooms == set(re.findall(r"`(\w+)`", rows[room])), room


@cache
def code() -> str:
    paths = [*SOURCE.rglob("*.py"), SOURCE / "watch" / "static" / "dashboard.js"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    return re.sub(r"\"\n\s+f?\"", "", text)  # a message may go on in the next line


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 25


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_that_quintet_gives(message: str) -> None:
    parts = [part.strip() for part in VARIABLE.split(message)]
    assert any(len(part) > 5 for part in parts), "too short to be found"
    assert not [part for part in parts if part not in code()]
