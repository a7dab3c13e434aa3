"""Decisions: the flow of a run, its state, the gates, what is shortened, the prompts. Pure."""
