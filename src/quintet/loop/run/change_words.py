"""What has changed in a project, in words."""

from collections.abc import Sequence
from typing import Final

from quintet.guard import Area, Change
from quintet.loop.journal import GuardedChange
from quintet.prose import first_few, printable

_WORDS: Final = {"mode": "changed the mode of", "type": "changed the type of"}


def guarded_change(change: Change) -> GuardedChange:
    """A change as the journal tells of it."""
    name = printable(change.name)
    match change.area:
        case Area.INDEX:
            name = f"{name} in the index"
        case Area.GIT:
            name = f".git/{name.partition('/')[2]}"
        case Area.CHECKOUT:
            name = f"{name} in your checkout"
    return GuardedChange(path=name, change=_WORDS.get(change.kind, change.kind))


def some_changes(changes: Sequence[Change]) -> str:
    """The first of some changes, and how many more there are."""
    return first_few([guarded_change(change) for change in changes])
