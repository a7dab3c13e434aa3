"""One package for each agent CLI: how to start it, type into it, and read it."""
