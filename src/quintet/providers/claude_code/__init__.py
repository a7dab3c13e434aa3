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
    histories=(
        *("projects", "todos", "tasks", "shell-snapshots", "file-history", "history.jsonl", "statsig", "debug", "ide"),
        *("backups", "sessions", "session-env", "telemetry", "paste-cache", "cache", "local", "downloads"),
    ),
    login_files=("~/.claude/.credentials.json",),
    variables=(
        *("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "IS_SANDBOX", "API_TIMEOUT_MS", "BASH_*", "MAX_THINKING_TOKENS"),
        *(
            "MAX_MCP_OUTPUT_TOKENS",
            "MCP_*",
            "ENABLE_TOOL_SEARCH",
            "VERTEX_*",
            "CLOUD_ML_REGION",
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
    ),
)
