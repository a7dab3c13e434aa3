"""Codex, OpenAI's agent CLI."""
