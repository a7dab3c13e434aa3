"""The map for contributors is that of the code: rooms, arrows, files."""

import re

from tests.docs.pages import DOCS, ROOT
from tests.test_rooms import MAY_IMPORT

SOURCE = ROOT / "src" / "quintet"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_*]+(?:/|\.py|\.md))`", PAGE)
    assert len(named) > 40
    assert not [name for name in named if not any(list(place.glob(name.rstrip("/"))) for place in (SOURCE, ROOT))]


def test_every_room_is_on_the_map_with_its_arrows() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*?) \| .*?\|$", PAGE, re.MULTILINE))
    top = {room: allowed for room, allowed in MAY_IMPORT.items() if "." not in room}
    assert rows.keys() == {*top, "cli"}
    for room, allowed in top.items():
        rooms = {other.partition(".")[0] for other in allowed}
        if room == "setup":
            assert rooms == top.keys() - {"setup", "demo", "execute", "fleet"}
        else:
            assert rooms == set(re.findall(r"`(\w+)`", rows[room])), room
