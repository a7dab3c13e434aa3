"""Every file and folder name of a project and of its runs, spelled once."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quintet.roles import Role

CONFIG_FILE: Final = "quintet.json"
SCHEMA_FILE: Final = Path(".quintet") / "schema.json"
OWN_FILES: Final = (CONFIG_FILE, f"{SCHEMA_FILE.parent}/**")
"""globs of the project's files that say how its runs work"""
TASK_TEMPLATE: Final = Path(".quintet") / "task.md"
"""the project's own template of new task files"""
TASK_SUFFIXES: Final = (".md", ".markdown", ".txt")
GITIGNORE: Final = ".gitignore"
TMP: Final = Path(".tmp")
"""below the project: everything of a run that people and tools look at"""
NOT_TMP: Final = f":(exclude){TMP}"
"""a pathspec of git: all files but those"""
RESPONSE_DIR: Final = TMP / "agent-responses"
PID_FILE: Final = TMP / "quintet.pid"
DISCOVERY: Final = TMP / "server.json"
"""the address of a run's server, and its token"""
LONGEST_WORD: Final = 4096
"""bytes that are read of a file in which a process says where it is"""
STATE: Final = "quintet-state.json"
STATE_FILE: Final = TMP / STATE
STATE_POINTER: Final = TMP / "state-file"
"""names the state file where a run keeps it in another place"""
JOURNAL: Final = "journal.jsonl"
PROMPTS: Final = "prompts"
SETTINGS: Final = "settings.json"
PROMPT_TEXTS: Final = "prompt-texts"
"""in a run's record: the settings that it was begun with, and the user's own prompt texts"""
PROTECTED: Final = "protected"
"""in a run's record: the protected files as they were at its start"""
CHANGES: Final = "changes.json"
"""what a run has changed in the repository, kept at its end"""
CHANGES_PATCH: Final = "changes.patch"
"""the same as a patch"""
REPORT_MARKDOWN: Final = "report.md"
REPORT_HTML: Final = "report.html"


@dataclass(frozen=True)
class Workspace:
    """Where a run belongs and where its agents work: two folders, that may be the same."""

    project: Path
    """the user's checkout, where the settings and the task are and by which people know the run"""
    tree: Path
    """what the agents change; the files of the run are in its `.tmp`"""
    branch: str = ""
    """the branch of the worktree that the run has to itself; empty where it works in the user's checkout"""
    included: tuple[str, ...] = ()
    """files of the user's checkout that were copied into the worktree and are never committed, as paths in the tree"""

    @property
    def is_worktree(self) -> bool:
        return bool(self.branch)


def user_state_folder() -> Path:
    """What Quintet keeps for this user outside of all projects."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "quintet"


def caches_folder(project: Path) -> Path:
    """Where sandboxes keep the packages that programs in them download, for all runs of a project."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:16]
    return user_state_folder() / "caches" / name


def worktrees_folder() -> Path:
    """Where the worktrees of runs are, and a file about each."""
    return user_state_folder() / "worktrees"


def fleet_folder() -> Path:
    """What the queue and its workers keep on this machine."""
    return user_state_folder() / "fleet"


def record_folder(run_id: str) -> Path:
    """What Quintet keeps of a run where its agents have nothing to do: the truth, of which the archive is a copy."""
    return user_state_folder() / "records" / run_id


def role_tmp(run_id: str, role: Role) -> Path:
    """What a role in a sandbox has as the `.tmp` of its work tree. No other role can see it."""
    return record_folder(run_id) / "roles" / role.name


def private_git_folder(run_id: str) -> Path:
    """The git folder that the agents of a run in a sandbox have to themselves."""
    return record_folder(run_id) / "git"


def checks_git_folder(run_id: str) -> Path:
    """The git folder that checks have, which no agent can write to."""
    return record_folder(run_id) / "checks-git"


def guard_folder(run_id: str) -> Path:
    """The snapshots by which a run knows what its agents have changed."""
    return record_folder(run_id) / "guard"


def protected_folder(run_id: str) -> Path:
    """The protected files of a run as they were at its start."""
    return record_folder(run_id) / PROTECTED


def checks_folder(run_id: str) -> Path:
    """What the checks of a run in a sandbox have as `/tmp` and as the `.tmp` of the work tree."""
    return record_folder(run_id) / "checks"


def start_snapshot(run_id: str) -> Path:
    """The snapshot of the project before a run; it is kept where something was not committed then."""
    return guard_folder(run_id) / "start.json"


def run_folder(wd: Path, run_id: str) -> Path:
    """The archive of a run."""
    return wd / TMP / run_id


def response_path_for(role: Role, wd: Path) -> Path:
    """The file that a role writes its response to."""
    return wd / RESPONSE_DIR / role.response_file
