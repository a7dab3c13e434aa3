"""Five coding agents take a task from specification to a passed test, unattended, in real terminals."""

__version__ = "0.1.0"
