"""Which agent CLIs there are, and that nothing of theirs is loaded before it is used."""

import subprocess
import sys

import pytest

from quintet.config.table import OWN_PROVIDERS
from quintet.providers.registry import REGISTERED, find_provider, provider_names, untried_providers

LOADED = "import sys; from quintet.config import load_settings; print(*(n for n in sys.modules if 'quintet.prov' in n))"


@pytest.mark.parametrize("name", REGISTERED)
def test_each_provider_is_registered_by_its_own_package(name: str) -> None:
    provider = find_provider(name)
    assert provider is not None
    assert provider.name == name
    assert provider.registration is REGISTERED[name]


def test_the_settings_allow_what_is_registered() -> None:
    assert provider_names() == OWN_PROVIDERS
    tried = ("codex", "claude_code", "gemini_cli", "opencode_cli", "copilot_cli", "qwen_code")
    assert provider_names()[: len(tried)] == tried
    untried = {"kiro_cli", "kimi_cli", "cursor_cli", "auggie", "cline", "goose"}
    assert set(untried_providers()) == untried
    assert set(provider_names()) == {*tried, *untried, "scripted"}
    assert find_provider("nobody") is None


def test_the_settings_load_no_code_of_a_provider() -> None:
    found = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    light = {"registration", "registry", "codex", "claude_code", "scripted", "acp", "acp.agents", "acp.host_settings"}
    assert set(found) == {"quintet.providers", *(f"quintet.providers.{name}" for name in light)}
