"""Response files: where agents leave their replies, and the archive that keeps every one of them."""

import contextlib
import io
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from quintet import files
from quintet.errors import RunError
from quintet.layout import GITIGNORE, PROMPTS, RESPONSE_DIR, TMP, response_path_for
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
    """Make `.tmp/`, which ignores itself; an empty list is what a full disk or a kill has left of ours."""
    files.make_folder(wd / TMP, wd)
    ignore = wd / TMP / GITIGNORE
    found = files.look(ignore, wd)
    if found is None or not found.st_size:
        files.write(ignore, "*\n", wd)


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

    @property
    def wd(self) -> Path:
        return self.record.wd

    @property
    def archive(self) -> Path:
        return self.record.archive

    def response_path_for(self, role: Role) -> Path:
        return response_path_for(role, self.wd)

    @property
    def ready(self) -> bool:
        """Whether an agent could write its response now."""
        return files.is_folder(self.wd / RESPONSE_DIR, self.wd)

    def ensure_response_dir(self) -> None:
        """Make the directory for responses, and have `.tmp/` ignore itself."""
        try:
            make_tmp(self.wd)
            for folder in (self.wd / RESPONSE_DIR, self.archive):
                files.make_folder(folder, self.wd)
        except OSError as error:
            raise RunError(f"{error.filename}: cannot be made ({error.strerror})") from None

    def clear_stale_response(self, role: Role, sequence: int) -> Path | None:
        """Move whatever is at a role's response path to the archive; the new path, or None where nothing was."""
        path = self.response_path_for(role)
        target = self.archive / f"{sequence:03d}-{role.output}-stale.md"
        try:
            if files.look(path, self.wd) is None:
                return None
            if files.is_folder(target, self.wd):
                shutil.rmtree(target)
            files.move(path, target, self.wd)
        except OSError as error:
            raise RunError(f"{path}: cannot be moved to the archive ({error.strerror})") from None
        self.record.keep_copy(target.name)
        return target

    def sweep(self, sequence: int) -> int:
        """Move what agents wrote after their steps were answered to the archive; the number of the last file there."""
        for role in ROLES:
            with contextlib.suppress(RunError):  # the run is over, and the next one clears it away
                sequence += self.clear_stale_response(role, sequence + 1) is not None
        return sequence

    def clear_irregular(self, role: Role) -> Path | None:
        """Move a link or a directory at a role's response path out of the way of the file that belongs there."""
        with contextlib.suppress(OSError):
            found = files.look(self.response_path_for(role), self.wd)
            if found and not stat.S_ISREG(found.st_mode):
                return self._put_aside(role, f"{role.output}-irregular-{{}}")
        return None

    def put_aside(self, role: Role, sequence: int) -> Path | None:
        """Move what is at the response path of a role that nothing is asked of to the archive."""
        with contextlib.suppress(OSError):
            if files.look(self.response_path_for(role), self.wd):
                return self._put_aside(role, f"{sequence:03d}-{role.output}-late-{{}}.md")
        return None

    def _put_aside(self, role: Role, form: str) -> Path:
        """Move what is at a role's response path to the archive, under the first free name of a form."""
        number = 1
        while files.look(target := self.archive / form.format(number), self.wd):
            number += 1
        files.move(self.response_path_for(role), target, self.wd)
        self.record.keep_copy(target.name)
        return target

    def file_time(self) -> int:
        """The present by the clock that stamps the files, which need not be ours."""
        mark = self.wd / RESPONSE_DIR / ".dispatch"
        try:
            files.write(mark, b"", self.wd)
            return mark.lstat().st_mtime_ns
        except OSError as error:
            raise RunError(f"{mark}: cannot be written ({error.strerror})") from None

    def look(self, role: Role, since: int) -> Look | None:
        """A look at the response; None where there is none yet, or only an empty, older or irregular file."""
        try:
            found = files.look(self.response_path_for(role), self.wd)
        except OSError:
            return None
        if found is None or not stat.S_ISREG(found.st_mode) or not found.st_size or found.st_mtime_ns < since:
            return None
        return Look(found.st_mtime_ns, found.st_size, found.st_ino)

    def read(self, role: Role) -> str | None:
        """The text of a response, of a long one its excerpt; None where it cannot be read or says nothing."""
        try:
            with files.reading(self.response_path_for(role), self.wd) as file:
                text = excerpt(file)
                return text if text.strip() or any(block.strip() for block in blocks(file)) else None
        except OSError:
            return None

    def keep_whole(self, role: Role, sequence: int) -> Path:
        """Copy a long response to the archive as it is. The original stays until `drop`."""
        name = f"{sequence:03d}-{role.output}.md"
        try:
            with files.reading(self.response_path_for(role), self.wd) as file:
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
            files.remove(self.response_path_for(role), self.wd)
