"""The command line: each command is a few lines that call a room."""
