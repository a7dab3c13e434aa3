"""A run in a terminal: the live view, the plain lines, the screen after a PASS."""
