"""Agents that speak the Agent Client Protocol: JSON-RPC over standard input and output, in place of a screen."""
