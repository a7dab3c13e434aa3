"""Snapshots of a project's work tree and repository, what changed since one, and the exact undo of it.

`Store` is a private folder that keeps snapshots. `take` makes one, `look` scans the project again by the rules of an
earlier one, and `save` keeps what that has seen. `compare` lists what differs, `Rules.split` says what of it a role may
do, `undo` takes the rest back and `finish` completes an undo that was killed; `keep` only writes changes down as a
patch. `outline` and `differences` are for a checkout that is only watched. `keep_protected` and `load_protected` give
the protected files as they were at the start of a run, for its checks.
"""

from quintet.guard.archive import keep
from quintet.guard.changes import Area, Change, compare
from quintet.guard.checkout import Outline, differences, outline
from quintet.guard.globs import matches
from quintet.guard.protected import ProtectedFiles, keep_protected, load_protected
from quintet.guard.rules import Rules, Split
from quintet.guard.scanning import SECONDS, START_SECONDS, look, save, take
from quintet.guard.snapshot import Snapshot, load
from quintet.guard.store import Entry, Store
from quintet.guard.undo import Undone, finish, undo

__all__ = [
    "SECONDS",
    "START_SECONDS",
    "Area",
    "Change",
    "Entry",
    "Outline",
    "ProtectedFiles",
    "Rules",
    "Snapshot",
    "Split",
    "Store",
    "Undone",
    "compare",
    "differences",
    "finish",
    "keep",
    "keep_protected",
    "load",
    "load_protected",
    "look",
    "matches",
    "outline",
    "save",
    "take",
    "undo",
]
