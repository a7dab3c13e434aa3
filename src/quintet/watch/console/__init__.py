"""A run in a terminal: the live view and the plain lines."""
