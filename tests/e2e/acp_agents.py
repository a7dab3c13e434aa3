"""The agents that speak the Agent Client Protocol: how each finds the scripted model and tries again quickly."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.install import ensure_copilot, ensure_gemini, ensure_opencode, ensure_qwen

KEY = "made-up-for-tests"
MODEL = "m1"


@dataclass(frozen=True)
class AcpAgent:
    """One of them, as a user has set it up."""

    name: str
    """what Quintet calls it"""
    ensure: Callable[[], Path]
    command: tuple[str, ...]
    """what a bare client starts so that it asks for nothing; its program is found by `ensure`"""
    environment: Callable[[str], dict[str, str]]
    """what it needs to find the model at an address"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """its settings by file below the home"""


def _opencode(url: str) -> dict[str, str]:
    loop = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {MODEL: {}},
    }
    model = f"loop/{MODEL}"
    config = {"model": model, "small_model": model, "autoupdate": False, "provider": {"loop": loop}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


AGENTS = {
    agent.name: agent
    for agent in (
        AcpAgent(
            "gemini_cli",
            ensure_gemini,
            ("--acp", "--approval-mode", "yolo", "--skip-trust"),
            lambda url: {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url},
            # It tries ten times for over three minutes; its setting counts only where one model is chosen.
            {".gemini/settings.json": {"general": {"maxAttempts": 1}}},
        ),
        AcpAgent("opencode_cli", ensure_opencode, ("acp",), _opencode),
        AcpAgent(
            "copilot_cli",
            ensure_copilot,
            ("--acp", "--allow-all"),
            lambda url: {
                "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
                "COPILOT_PROVIDER_API_KEY": KEY,
                "COPILOT_MODEL": MODEL,
            },
        ),
        AcpAgent(
            "qwen_code",
            ensure_qwen,
            ("--acp", "--approval-mode", "yolo"),
            lambda url: {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": MODEL},
            {".qwen/settings.json": {"model": {"generationConfig": {"maxRetries": 0}}}},
        ),
    )
}


def prepare(home: Path) -> None:
    """Write the agents' settings."""
    for agent in AGENTS.values():
        for name, settings in agent.settings.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings))


def environment(model_url: str) -> dict[str, str]:
    """What all of them need to find the scripted model."""
    return {name: value for agent in AGENTS.values() for name, value in agent.environment(model_url).items()}
