"""The demo: the whole loop on a small real project, with scripted agents, without any account."""

import json
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from quintet import files, git
from quintet.demo.script import SCENARIO
from quintet.errors import RunError
from quintet.layout import CONFIG_FILE, GITIGNORE
from quintet.roles import ROLES

SCENARIO_FILE = "scenario.json"
TASK_FILE = "task.md"
_GIT_SETTINGS = (
    ("commit.gpgSign", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.autocrlf", "false"),
    ("core.excludesFile", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
)
"""in place of the user's, which may ask for a key, refuse a commit message, change line ends or leave files out"""


def prepare(folder: Path | None) -> Path:
    """Make the demo's project in a new folder: a git repository with one commit, the task and the agents' script.

    Its settings are in the project, so that `quintet run` goes on there with a demo that was stopped.
    """
    if shutil.which("git") is None:
        raise RunError("git is not installed: the demo's project is a git repository")
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="quintet-demo-"))
    elif folder.exists() and any(folder.iterdir()):
        raise RunError(f"{folder}: is not empty; name a folder that does not exist yet")
    project = folder.resolve() / "project"
    with resources.as_file(resources.files(__package__)) as shipped:
        texts = {path: path.relative_to(shipped) for path in (shipped / "project").rglob("*") if path.is_file()}
        for path, place in (texts | {shipped / TASK_FILE: Path(TASK_FILE)}).items():
            files.write(folder / place, path.read_bytes(), private=False)
    files.write(folder / SCENARIO_FILE, json.dumps(SCENARIO, indent=1), private=False)
    files.write(project / CONFIG_FILE, json.dumps(_settings(folder.resolve()), indent=2) + "\n", private=False)
    files.write(project / GITIGNORE, "__pycache__/\n", private=False)
    for arguments in (
        ["init", "--quiet"],
        ["config", "user.name", "Quintet demo"],
        ["config", "user.email", "demo@localhost"],
        *(["config", *setting] for setting in _GIT_SETTINGS),
        ["add", "--all"],
        ["commit", "--quiet", "--message", "Begin"],
    ):
        git.run(project, *arguments)
    return folder.resolve()


def _settings(folder: Path) -> dict[str, Any]:
    script = {"args": ["--scenario", str(folder / SCENARIO_FILE)]}
    return {
        "provider": "scripted",
        "agents": {role.name: script for role in ROLES},
        "prompt_file": str(folder / TASK_FILE),
        "guard": {"protect": ["check.sh", "titles.txt"]},
        "limits": {"poll_seconds": 0.5},
        "cleanup_on_exit": True,
        "post_processing": {"git_commit": True, "git_commit_comment": "Turn titles into slugs"},
    }
