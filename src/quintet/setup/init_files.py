"""The files that `quintet init` writes into a project: settings, their schema, a task template, a line in `.gitignore`.

Nothing else in the user's files is changed.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quintet import files, git
from quintet.config.schema import SCHEMA_KEY, json_schema
from quintet.config.table import WORKTREE
from quintet.errors import RunError
from quintet.layout import CONFIG_FILE, GITIGNORE, SCHEMA_FILE, TASK_TEMPLATE, TMP
from quintet.providers.registry import REGISTERED
from quintet.setup.tasks import shipped_template

OURS: Final = "Written by quintet init, which brings it up to date; changes to it are lost."
WRITTEN, UPDATED, LEFT = "written", "updated", "left as it is"


@dataclass(frozen=True)
class FileAction:
    """What was done with one file."""

    path: str
    what: str
    note: str = ""

    @property
    def is_change(self) -> bool:
        return self.what != LEFT


def installed_agents(env: Mapping[str, str]) -> dict[str, str]:
    """The path of each agent CLI that is installed, by provider."""
    programs = {name: shutil.which(agent.program, path=env.get("PATH")) for name, agent in REGISTERED.items()}
    return {name: program for name, program in programs.items() if program}


def write_init_files(wd: Path, provider: str) -> Iterator[FileAction]:
    """Write the files that are missing; what was done with each."""
    try:
        yield _settings(wd, provider)
        yield _schema(wd)
        yield _write_new(wd, TASK_TEMPLATE, shipped_template(), "the template of new task files; change it as you like")
        yield _ignore(wd)
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None


def _settings(wd: Path, provider: str) -> FileAction:
    document: dict[str, Any] = {
        SCHEMA_KEY: f"./{SCHEMA_FILE.as_posix()}",
        "provider": provider,
        "project_test_cmd": "",
        "verify_cmd": "",
        "post_processing": {"openspec_archive": False, "git_commit": False},
    }
    if git.answer(wd, "rev-parse", "--verify", "--quiet", "HEAD"):
        document["workspace"] = {"mode": WORKTREE}
    return _write_new(wd, Path(CONFIG_FILE), _json(document), "the settings")


def _schema(wd: Path) -> FileAction:
    """Write the schema of this release, also over that of another one; a file of the user's stays."""
    path, text = wd / SCHEMA_FILE, _json({"$comment": OURS} | json_schema())
    if not path.exists():
        return _write_new(wd, SCHEMA_FILE, text, "for editors: it completes and checks the settings")
    found = path.read_text(encoding="utf-8", errors="replace")
    if found == text or OURS not in found:
        return FileAction(SCHEMA_FILE.as_posix(), LEFT)
    files.write(path, text, wd, private=False)
    return FileAction(SCHEMA_FILE.as_posix(), UPDATED, "to the settings of this release")


def _write_new(wd: Path, name: Path, text: str, note: str) -> FileAction:
    try:
        files.write_new(wd / name, text, wd, private=False)
    except FileExistsError:
        return FileAction(name.as_posix(), LEFT)
    return FileAction(name.as_posix(), WRITTEN, note)


def _ignore(wd: Path) -> FileAction:
    """Let git ignore the files of runs, also for tools that read only the ignore file at the top."""
    entry, name = f"{TMP}/", GITIGNORE
    if not git.is_repository(wd):
        return FileAction(name, LEFT, "not a git repository; with git init you can undo what agents do")
    path = wd / name
    if git.answer(wd, "check-ignore", "--quiet", "--no-index", entry) is not None:
        return FileAction(name, LEFT)
    before = path.read_bytes() if path.exists() else b""
    ending = b"\r\n" if b"\r\n" in before else b"\n"
    files.append_line(path, entry.encode() + ending, wd, private=False)
    return FileAction(name, UPDATED if before else WRITTEN, f"{entry} contains the files of runs")


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
