"""A quick look at a checkout that is only watched: its branch and commit, and mode, size and time of its files."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quintet import git
from quintet.guard.changes import Area, Change
from quintet.guard.snapshot import Signature
from quintet.guard.store import Entry
from quintet.layout import NOT_TMP


@dataclass(frozen=True)
class Outline:
    """One moment of a checkout."""

    head: str
    files: dict[str, Signature]


def outline(folder: Path) -> Outline:
    """What is in a checkout now; GitError where git cannot tell."""
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".", NOT_TMP)
    found: dict[str, Signature] = {}
    for path in git.run(folder, *listing).parts:
        with suppress(OSError):
            now = os.lstat(f"{folder}/{path}")
            found[path] = (now.st_mode, now.st_size, now.st_mtime_ns)
    head = git.run(folder, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD", check=False).text
    return Outline(head, found)


def differences(before: Outline, after: Outline) -> tuple[Change, ...]:
    """What has changed in a checkout since an earlier look."""
    found = [
        Change(Area.CHECKOUT, path, was and Entry(*was), now and Entry(*now))
        for path in sorted(before.files.keys() | after.files.keys())
        if (was := before.files.get(path)) != (now := after.files.get(path))
    ]
    if before.head != after.head:
        found.append(Change(Area.CHECKOUT, "HEAD", before.head, after.head))
    return tuple(found)
