"""Carrying out: the driver, a turn of an agent, the terminals, recovery, what follows a PASS."""
