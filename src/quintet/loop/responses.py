"""Response files: where agents leave their replies, and the archive that keeps every one of them."""

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet.errors import RunError
from quintet.loop.markup import normalise
from quintet.loop.prompts import RESPONSE_DIR, response_path_for
from quintet.roles import ROLES, Role

TMP: Final = RESPONSE_DIR.parent


def make_tmp(wd: Path) -> None:
    """Make `.tmp/`, which ignores itself; an empty list is what a full disk or a kill has left of ours."""
    (wd / TMP).mkdir(exist_ok=True)
    ignore = wd / TMP / ".gitignore"
    if not ignore.exists() or not ignore.stat().st_size:
        ignore.write_text("*\n", encoding="utf-8")


@dataclass(frozen=True)
class Look:
    """What one look at a response file saw; two equal looks mean that nobody is writing."""

    changed_at: int
    size: int
    inode: int


@dataclass(frozen=True)
class Responses:
    """The response files of one run. Agents may delete all of it at any time (`git clean -fdx`)."""

    wd: Path
    run_id: str

    @property
    def archive(self) -> Path:
        return self.wd / TMP / self.run_id

    def response_path_for(self, role: Role) -> Path:
        return response_path_for(role, self.wd)

    @property
    def ready(self) -> bool:
        """Whether an agent could write its response now."""
        return (self.wd / RESPONSE_DIR).is_dir()

    def ensure_response_dir(self) -> None:
        """Make the directory for responses, and have `.tmp/` ignore itself."""
        try:
            make_tmp(self.wd)
            (self.wd / RESPONSE_DIR).mkdir(exist_ok=True)
            self.archive.mkdir(exist_ok=True)
        except OSError as error:
            raise RunError(f"{error.filename}: cannot be made ({error.strerror})") from None

    def clear_stale_response(self, role: Role, sequence: int) -> Path | None:
        """Move whatever is at a role's response path to the archive; the new path, or None where nothing was."""
        path = self.response_path_for(role)
        if not os.path.lexists(path):
            return None
        target = self.archive / f"{sequence:03d}-{role.output}-stale.md"
        try:
            self.archive.mkdir(parents=True, exist_ok=True)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            shutil.move(path, target)
        except OSError as error:
            raise RunError(f"{path}: cannot be moved to the archive ({error.strerror})") from None
        return target

    def sweep(self, sequence: int) -> int:
        """Move what agents wrote after their steps were answered to the archive; the number of the last file there."""
        for role in ROLES:
            with contextlib.suppress(RunError):  # the run is over, and the next one clears it away
                sequence += self.clear_stale_response(role, sequence + 1) is not None
        return sequence

    def clear_irregular(self, role: Role) -> Path | None:
        """Move a link or a directory at a role's response path out of the way of the file that belongs there."""
        path = self.response_path_for(role)
        if not os.path.lexists(path) or (path.is_file() and not path.is_symlink()):
            return None
        number = 1
        while os.path.lexists(target := self.archive / f"{role.output}-irregular-{number}"):
            number += 1
        try:
            shutil.move(path, target)
        except OSError:
            return None
        return target

    def file_time(self) -> int:
        """The present by the clock that stamps the files, which need not be ours."""
        mark = self.wd / RESPONSE_DIR / ".dispatch"
        try:
            mark.write_bytes(b"")
            return mark.stat().st_mtime_ns
        except OSError as error:
            raise RunError(f"{mark}: cannot be written ({error.strerror})") from None

    def look(self, role: Role, since: int) -> Look | None:
        """A look at the response; None where there is none yet, or only an empty, older or irregular file."""
        try:
            found = self.response_path_for(role).lstat()
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode) or not found.st_size or found.st_mtime_ns < since:
            return None
        return Look(found.st_mtime_ns, found.st_size, found.st_ino)

    def read(self, role: Role) -> str | None:
        """The text of a response; None where it cannot be read or says nothing."""
        try:
            descriptor = os.open(self.response_path_for(role), os.O_RDONLY | os.O_NOFOLLOW)
            with open(descriptor, "rb") as file:  # noqa: PTH123 - the file behind the descriptor, never behind a link
                text = normalise(file.read().decode("utf-8", "replace"))
        except OSError:
            return None
        return text if text.strip() else None

    def keep(self, role: Role, sequence: int, text: str) -> Path:
        """Write a reply to the archive under its final name. The original stays until `drop`."""
        target = self.archive / f"{sequence:03d}-{role.output}.md"
        self.write(target, text)
        return target

    def keep_prompt(self, name: str, text: str) -> Path:
        """Write a prompt to the archive."""
        target = self.archive / "prompts" / f"{name}.md"
        self.write(target, text)
        return target

    def keep_output(self, sequence: int, command: str, exit_code: int, output: str) -> Path:
        """Write what the user's command has said, which has the last word on a PASS."""
        target = self.archive / f"{sequence:03d}-verify.md"
        self.write(target, f"$ {command}\n{output.rstrip()}\n\n(exit code {exit_code})\n")
        return target

    def write(self, target: Path, text: str) -> None:
        """Write a file of the archive, private to the user."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:  # noqa: PTH123
                file.write(text.encode("utf-8", "replace"))
        except OSError as error:
            raise RunError(f"{target}: cannot be written ({error.strerror})") from None

    def drop(self, role: Role) -> None:
        """Remove a response that is safely in the state and in the archive."""
        with contextlib.suppress(OSError):
            self.response_path_for(role).unlink()
