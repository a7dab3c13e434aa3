"""Codex, OpenAI's agent CLI."""

from typing import Final

from quintet.providers.registration import OpenSpecTool, Registration

CODEX: Final = Registration(
    "codex",
    program="codex",
    install="npm install -g @openai/codex",
    openspec=OpenSpecTool("codex", (".agents/skills", ".codex/skills"), "~/.codex/prompts/opsx-{}.md"),
    has_commands=True,
    homes=("~/.codex",),
    home_variable="CODEX_HOME",
    endpoints=("api.openai.com", "chatgpt.com", "auth.openai.com"),
    base_urls=("OPENAI_BASE_URL",),
    is_proxied=True,
    histories=("sessions", "archived_sessions", "log", "history.jsonl", "*.sqlite*", "*tmp", "cache"),
    login_files=("~/.codex/auth.json",),
    variables=("OPENAI_*", "AZURE_OPENAI_*", "CODEX_*"),
)
