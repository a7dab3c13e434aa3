"""What `quintet init` writes into a project: its settings, their schema, a task template, an ignore entry.

A file of the user's is never changed, but for one line at the end of `.gitignore`.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quintet import files, git
from quintet.config.schema import SCHEMA_KEY, json_schema
from quintet.errors import RunError
from quintet.layout import CONFIG_FILE, TMP
from quintet.providers.registry import REGISTERED
from quintet.setup.tasks import TEMPLATE, shipped_template

SCHEMA_FILE: Final = Path(".quintet") / "schema.json"
OURS: Final = "Written by quintet init, which brings it up to date; changes to it are lost."
WRITTEN, UPDATED, LEFT = "written", "updated", "left as it is"


@dataclass(frozen=True)
class Act:
    """What became of one file."""

    path: str
    what: str
    note: str = ""

    @property
    def is_change(self) -> bool:
        return self.what != LEFT


def installed_agents(env: Mapping[str, str]) -> dict[str, str]:
    """By provider where its agent CLI is, for those that are installed."""
    programs = {name: shutil.which(agent.program, path=env.get("PATH")) for name, agent in REGISTERED.items()}
    return {name: program for name, program in programs.items() if program}


def write_project(wd: Path, provider: str) -> Iterator[Act]:
    """Write what is missing, and say of every file what became of it."""
    try:
        yield _settings(wd, provider)
        yield _schema(wd)
        yield _write_new(wd, TEMPLATE, shipped_template(), "what new task files begin with; change it as you like")
        yield _ignore(wd)
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None


def _settings(wd: Path, provider: str) -> Act:
    document: dict[str, Any] = {
        SCHEMA_KEY: f"./{SCHEMA_FILE.as_posix()}",
        "provider": provider,
        "project_test_cmd": "",
        "verify_cmd": "",
        "post_processing": {"openspec_archive": False, "git_commit": False},
    }
    return _write_new(wd, Path(CONFIG_FILE), _json(document), "the settings")


def _schema(wd: Path) -> Act:
    """The schema is ours: it follows the installed release, unless somebody has put another file there."""
    path, text = wd / SCHEMA_FILE, _json({"$comment": OURS} | json_schema())
    if not path.exists():
        return _write_new(wd, SCHEMA_FILE, text, "by which editors complete the settings")
    found = path.read_text(encoding="utf-8", errors="replace")
    if found == text or OURS not in found:
        return Act(SCHEMA_FILE.as_posix(), LEFT)
    files.write(path, text, wd, private=False)
    return Act(SCHEMA_FILE.as_posix(), UPDATED, "to the settings of this release")


def _write_new(wd: Path, name: Path, text: str, note: str) -> Act:
    try:
        files.write_new(wd / name, text, wd, private=False)
    except FileExistsError:
        return Act(name.as_posix(), LEFT)
    return Act(name.as_posix(), WRITTEN, note)


def _ignore(wd: Path) -> Act:
    """Keep what runs leave out of commits, also where nobody asks git's nested ignore files."""
    entry, name = f"{TMP}/", ".gitignore"
    if not git.is_repository(wd):
        return Act(name, LEFT, "this is no git repository; git init makes one, and lets you take back what agents do")
    path = wd / name
    if git.answer(wd, "check-ignore", "--quiet", "--no-index", entry) is not None:
        return Act(name, LEFT)
    before = path.read_bytes() if path.exists() else b""
    ending = b"\r\n" if b"\r\n" in before else b"\n"
    files.append_line(path, entry.encode() + ending, wd, private=False)
    return Act(name, UPDATED if before else WRITTEN, f"{entry} holds what runs leave")


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
