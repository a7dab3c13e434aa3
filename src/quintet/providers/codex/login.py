"""Whether Codex can talk to its model: seen without reading any secret."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quintet.providers.base import Login
from quintet.providers.codex.launch import codex_home
from quintet.providers.programs import run_briefly


def find_login(program: str, env: Mapping[str, str]) -> Login:
    """A login of its own, or a model provider of the user's that needs none; otherwise Codex itself is asked."""
    home = codex_home(env)
    if _has_own_model(home):
        return Login.NOT_NEEDED
    if (home / "auth.json").exists():
        return Login.FOUND
    done = run_briefly([program, "login", "status"], env)
    if done is None:
        return Login.NOT_SEEN
    if done.returncode == 0:
        return Login.FOUND
    return Login.MISSING if b"not logged in" in (done.stdout + done.stderr).lower() else Login.NOT_SEEN


def _has_own_model(home: Path) -> bool:
    """Whether the user's settings name a model provider that does not use OpenAI's login."""
    try:
        settings = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    name, providers = settings.get("model_provider"), settings.get("model_providers")
    chosen: Any = providers.get(name) if isinstance(providers, dict) and isinstance(name, str) else None
    return isinstance(chosen, dict) and not chosen.get("requires_openai_auth")
