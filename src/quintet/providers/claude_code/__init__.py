"""Claude Code, Anthropic's agent CLI."""

from typing import Final

from quintet.providers.registration import OpenSpecTool, Registration

CLAUDE_CODE: Final = Registration(
    "claude_code",
    program="claude",
    install="npm install -g @anthropic-ai/claude-code",
    openspec=OpenSpecTool("claude", (".claude/skills",), ".claude/commands/opsx/{}.md"),
    has_commands=True,
    homes=("~/.claude",),
    home_variable="CLAUDE_CONFIG_DIR",
    own_files=("~/.claude.json",),
    endpoints=("api.anthropic.com", "platform.claude.com", "console.anthropic.com", "claude.ai"),
    base_urls=("ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL"),
    is_proxied=True,
)
