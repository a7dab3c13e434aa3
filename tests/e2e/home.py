"""A home directory for the agent CLIs: their settings, and nothing of the user's."""

import json
import shlex
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.e2e.install import STORE, need_node, need_tmux

MODEL = "gpt-5-codex"
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


def make_home(model_url: str, projects: Iterable[Path], programs: Sequence[Path]) -> Path:
    """A new home: Codex talks to that model and trusts the projects, login shells find the programs."""
    homes = STORE / "homes"
    homes.mkdir(parents=True, exist_ok=True)
    # Not below the system's temporary directory: Codex wants its own folder elsewhere.
    home = Path(tempfile.mkdtemp(dir=homes, prefix="h"))
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(codex_config(model_url, projects))
    (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True, "theme": "dark"}))
    # /etc/profile sets PATH anew in every login shell, so it has to be set after that.
    profile = f"export PATH={shlex.quote(search_path(programs))}\n"
    for name in (".bash_profile", ".profile"):
        (home / name).write_text(profile)
    return home


def search_path(programs: Sequence[Path]) -> str:
    needed = [*programs, need_node(), need_tmux()]
    return ":".join(dict.fromkeys([*(str(program.parent) for program in needed), *SYSTEM_PATH]))


def clean_environment(home: Path, programs: Sequence[Path]) -> dict[str, str]:
    """All that a program of these tests gets to see of the environment."""
    return {
        "HOME": str(home),
        "PATH": search_path(programs),
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }


def codex_config(model_url: str, projects: Iterable[Path]) -> str:
    trusted = "".join(
        f'[projects.{json.dumps(str(project.resolve()))}]\ntrust_level = "trusted"\n' for project in projects
    )
    return f"""\
model = "{MODEL}"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "{model_url}/v1"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
{trusted}\
[analytics]
enabled = false
"""
