"""The terminal server, and the profiles that it gives to the agents."""
