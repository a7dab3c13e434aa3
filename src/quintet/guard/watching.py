"""What comes and goes in folders, told by the kernel: a file that was there for a moment leaves no other trace.

Only Linux has it. Elsewhere, and where the user has no watches left, nothing is seen here.
"""

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_MOST_FOLDERS: Final = 8192
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x800
_ENTRIES: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_OVERFLOW: Final = 0x4000
_IGNORED: Final = 0x8000
_FOLDER: Final = 0x40000000
_ONLY_FOLDERS: Final = 0x01000000 | 0x02000000
"""no links are followed"""
_HEADER: Final = struct.Struct("iIII")
_READ: Final = 1 << 16
EVERYTHING: Final = "."
"""so much has changed that the kernel has lost count, or the tree itself was moved"""


class FolderWatch:
    """Notes every name that is created, removed or moved in some folders of a tree until `finish`."""

    def __init__(self, tree: Path, folders: Iterable[str]) -> None:
        """Begin to watch; folders are relative to the tree, with a slash at the end, and the tree itself is empty."""
        self._seen: set[str] = set()
        self._folders: dict[int, str] = {}
        self._handle = -1
        if not sys.platform.startswith("linux"):
            return
        self._libc = ctypes.CDLL(None)
        self._handle = self._libc.inotify_init1(os.O_CLOEXEC)
        if self._handle < 0:
            return
        self._root = self._add(tree, "", _MOVE_SELF)
        for folder, _ in zip(folders, range(_MOST_FOLDERS), strict=False):
            if folder:
                self._add(tree, folder)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish(self) -> set[str]:
        """Stop watching; the paths that came or went, those of folders with a slash at the end."""
        if self._handle >= 0:
            self._libc.inotify_rm_watch(self._handle, self._root)  # the last event that the reader gets
            self._reader.join()
            os.close(self._handle)
            self._handle = -1
        return self._seen

    def _add(self, tree: Path, folder: str, more: int = 0) -> int:
        path = os.fsencode(tree / folder)
        number = int(self._libc.inotify_add_watch(self._handle, path, _ENTRIES | more | _ONLY_FOLDERS))
        if number >= 0:
            self._folders[number] = folder
        return number

    def _read(self) -> None:
        """Read as events come: the kernel keeps a limited number of them."""
        while self._root >= 0:
            data, position = os.read(self._handle, _READ), 0
            while position < len(data):
                number, mask, _, length = _HEADER.unpack_from(data, position)
                position += _HEADER.size + length
                if mask & _IGNORED and number == self._root:
                    return
                name = os.fsdecode(data[position - length : position].rstrip(b"\0"))
                self._note(number, mask, name)

    def _note(self, number: int, mask: int, name: str) -> None:
        if mask & (_OVERFLOW | _MOVE_SELF):
            self._seen.add(EVERYTHING)
        elif mask & _ENTRIES and number in self._folders:
            self._seen.add(f"{self._folders[number]}{name}{'/' if mask & _FOLDER else ''}")
