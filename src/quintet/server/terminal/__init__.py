"""Terminals: agents in panes, their status, and input to them."""
