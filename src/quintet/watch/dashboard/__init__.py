"""The dashboard: its routes, its JSON, its page."""
