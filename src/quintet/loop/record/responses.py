"""Response files: where agents leave their replies, and the archive that keeps every one of them."""

import contextlib
import io
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Final

from quintet import files
from quintet.errors import RunError
from quintet.layout import GITIGNORE, PROMPTS, TMP, response_path_for, role_tmp
from quintet.loop.decide.markup import normalise
from quintet.loop.record.run_record import RunRecord
from quintet.roles import ROLES, Role

LONGEST_REPLY: Final = 2_000_000
"""bytes of a reply that travel on as they are"""
EXCERPT: Final = 200_000
"""bytes of a longer one that do, from its beginning and from its end"""
_BLOCK: Final = 1 << 17
_CUT: Final = " [...]\n"


def make_tmp(wd: Path) -> None:
    """Make `.tmp/`, which ignores itself."""
    _make_ignored(wd / TMP, wd)


def _make_ignored(folder: Path, below: Path) -> None:
    """Make a folder that ignores itself; an empty list is what a full disk or a kill has left of ours."""
    files.make_folder(folder, below)
    ignore = folder / GITIGNORE
    found = files.look(ignore, below)
    if found is None or not found.st_size:
        files.write(ignore, "*\n", below)


def excerpt(file: IO[bytes]) -> str:
    """The text of a file; of a long one its beginning and its end, with a note between them."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if size <= LONGEST_REPLY:
        return normalise(file.read().decode("utf-8", "replace"))
    head = file.read(EXCERPT)
    file.seek(size - EXCERPT)
    tail = file.read(EXCERPT)
    note = f"[... {size - 2 * EXCERPT} of {size} bytes are left out here; the whole reply is in the run's archive ...]"
    return "\n".join((normalise(head.decode("utf-8", "replace")), note, normalise(tail.decode("utf-8", "replace"))))


def blocks(file: IO[bytes]) -> Iterator[str]:
    """The text of a file in blocks of whole lines. What a line has beyond a block's length is left out."""
    file.seek(0)
    text = io.TextIOWrapper(file, "utf-8", "replace")
    try:
        while block := text.read(_BLOCK):
            if not block.endswith("\n"):
                block += text.readline(_BLOCK)
            if len(block) >= _BLOCK and not block.endswith("\n") and (more := text.readline(_BLOCK)):
                block += _CUT  # so that the beginning of a line is not taken for a whole one
                while more and not more.endswith("\n"):
                    more = text.readline(_BLOCK)
            yield block.removeprefix("\ufeff")
    finally:
        text.detach()


@dataclass(frozen=True)
class Look:
    """What one look at a response file saw; two equal looks mean that nobody is writing."""

    changed_at: int
    size: int
    inode: int


@dataclass(frozen=True)
class Responses:
    """The response files of one run. Agents may delete all of it at any time (`git clean -fdx`)."""

    record: RunRecord
    sandboxed: bool = False
    """whether each role has a `.tmp` of its own, in which no other role can write"""

    @property
    def wd(self) -> Path:
        return self.record.wd

    @property
    def archive(self) -> Path:
        return self.record.archive

    def tmp_of(self, role: Role) -> Path:
        """The folder that a role has as the `.tmp` of its work tree."""
        return role_tmp(self.record.run_id, role) if self.sandboxed else self.wd / TMP

    def path_of(self, role: Role) -> Path:
        """Where the response of a role is found; a role in a sandbox knows the same file by its path in the tree."""
        return self._paths[role]

    @cached_property
    def _paths(self) -> dict[Role, Path]:
        in_tmp = {role: response_path_for(role, self.wd).relative_to(self.wd / TMP) for role in ROLES}
        return {role: self.tmp_of(role) / path for role, path in in_tmp.items()}

    @property
    def _below(self) -> Path:
        """The folder in which agents can make links, which are not followed there."""
        return self.record.folder if self.sandboxed else self.wd

    @property
    def ready(self) -> bool:
        """Whether an agent could write its response now."""
        folders = {self.path_of(role).parent for role in ROLES}
        return all(files.is_folder(folder, self._below) for folder in folders)

    def ensure_response_dir(self) -> None:
        """Make the directory for responses, and have `.tmp/` ignore itself."""
        try:
            make_tmp(self.wd)
            files.make_folder(self.archive, self.wd)
            for role in ROLES:
                if self.sandboxed:
                    _make_ignored(self.tmp_of(role), self._below)
                files.make_folder(self.path_of(role).parent, self._below)
        except OSError as error:
            raise RunError(f"{error.filename}: cannot be made ({error.strerror})") from None

    def clear_stale_response(self, role: Role, sequence: int) -> Path | None:
        """Move whatever is at a role's response path to the archive; the new path, or None where nothing was."""
        path, name = self.path_of(role), f"{sequence:03d}-{role.output}-stale.md"
        try:
            if files.look(path, self._below) is None:
                return None
            if files.is_folder(self._kept_at(name), self._below):
                shutil.rmtree(self._kept_at(name))
            return self._move(role, name)
        except OSError as error:
            raise RunError(f"{path}: cannot be moved to the archive ({error.strerror})") from None

    def _kept_at(self, name: str) -> Path:
        """Where a file goes that is moved away: a sandbox's own ones to the record, which is on the same disk."""
        return (self.record.folder if self.sandboxed else self.archive) / name

    def _move(self, role: Role, name: str) -> Path:
        """Move what is at a role's response path to the archive and to the record, under a name; where it is then.

        What is no file and was in a sandbox stays in the record.
        """
        kept = self._kept_at(name)
        files.move(self.path_of(role), kept, self._below)
        if not self.sandboxed:
            self.record.keep_copy(name)
        elif kept.is_symlink() or not kept.is_file():
            return kept
        else:
            self.record.write_copy(name)
        return self.archive / name

    def sweep(self, sequence: int) -> int:
        """Move what agents wrote after their steps were answered to the archive; the number of the last file there."""
        for role in ROLES:
            with contextlib.suppress(RunError):  # the run is over, and the next one clears it away
                sequence += self.clear_stale_response(role, sequence + 1) is not None
        return sequence

    def clear_irregular(self, role: Role) -> Path | None:
        """Move a link or a directory at a role's response path out of the way of the file that belongs there."""
        with contextlib.suppress(OSError):
            found = files.look(self.path_of(role), self._below)
            if found and not stat.S_ISREG(found.st_mode):
                return self._put_aside(role, f"{role.output}-irregular-{{}}")
        return None

    def put_aside(self, role: Role, sequence: int) -> Path | None:
        """Move what is at the response path of a role that nothing is asked of to the archive."""
        with contextlib.suppress(OSError):
            if files.look(self.path_of(role), self._below):
                return self._put_aside(role, f"{sequence:03d}-{role.output}-late-{{}}.md")
        return None

    def _put_aside(self, role: Role, form: str) -> Path:
        """Move what is at a role's response path to the archive, under the first free name of a form."""
        number = 1
        while files.look(self._kept_at(form.format(number)), self._below):
            number += 1
        return self._move(role, form.format(number))

    def file_time(self, role: Role) -> int:
        """The present by the clock that stamps a role's files, which need not be ours."""
        mark = self.path_of(role).parent / ".dispatch"
        try:
            files.write(mark, b"", self._below)
            return mark.lstat().st_mtime_ns
        except OSError as error:
            raise RunError(f"{mark}: cannot be written ({error.strerror})") from None

    def look(self, role: Role, since: int) -> Look | None:
        """A look at the response; None where there is none yet, or only an empty, older or irregular file."""
        try:
            found = files.look(self.path_of(role), self._below)
        except OSError:
            return None
        if found is None or not stat.S_ISREG(found.st_mode) or not found.st_size or found.st_mtime_ns < since:
            return None
        return Look(found.st_mtime_ns, found.st_size, found.st_ino)

    def read(self, role: Role) -> str | None:
        """The text of a response, of a long one its excerpt; None where it cannot be read or says nothing."""
        try:
            with files.reading(self.path_of(role), self._below) as file:
                text = excerpt(file)
                return text if text.strip() or any(block.strip() for block in blocks(file)) else None
        except OSError:
            return None

    def keep_whole(self, role: Role, sequence: int) -> Path:
        """Copy a long response to the archive as it is. The original stays until `drop`."""
        name = f"{sequence:03d}-{role.output}.md"
        try:
            with files.reading(self.path_of(role), self._below) as file:
                files.copy(file, self.record.folder / name)
            self.record.write_copy(name)
        except OSError as error:
            raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None
        return self.archive / name

    @contextlib.contextmanager
    def kept(self, name: str) -> Iterator[IO[bytes]]:
        """A reply that was kept, to read from."""
        try:
            with files.reading(self.record.folder / name) as file:
                yield file
        except OSError as error:
            raise RunError(f"{error.filename}: cannot be read ({error.strerror})") from None

    def keep(self, role: Role, sequence: int, text: str) -> Path:
        """Write a reply to the archive under its final name. The original stays until `drop`."""
        return self.write(f"{sequence:03d}-{role.output}.md", text)

    def keep_prompt(self, name: str, text: str) -> Path:
        """Write a prompt to the archive."""
        return self.write(f"{PROMPTS}/{name}.md", text)

    def prompt_for(self, role: Role, name: str, text: str) -> Path:
        """Write a prompt to the archive, where its role can read it; in a sandbox it gets another copy there."""
        path = self.keep_prompt(name, text)
        if self.sandboxed:
            shown = self.tmp_of(role) / path.relative_to(self.wd / TMP)
            try:
                files.make_folder(shown.parent, self._below)
                files.write(shown, text, self._below)
            except OSError as error:
                raise RunError(f"{shown}: cannot be written ({error.strerror})") from None
        return path

    def keep_output(self, name: str, script: str, exit_code: int, output: str) -> Path:
        """Write what a check has said."""
        shown = "\n".join(f"$ {line}" for line in script.strip().split("\n"))
        return self.write(name, f"{shown}\n{output.rstrip()}\n\n(exit code {exit_code})\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the run, private to the user; where it is in the archive."""
        try:
            return self.record.write(name, text)
        except OSError as error:
            raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None

    def drop(self, role: Role) -> None:
        """Remove a response that is safely in the state and in the archive."""
        with contextlib.suppress(OSError):
            files.remove(self.path_of(role), self._below)
