"""Claude Code, Anthropic's agent CLI."""
