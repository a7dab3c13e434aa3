"""What can go wrong with tmux."""

from quintet.errors import ServerError


class TmuxError(ServerError):
    """tmux is missing, is too old, or has failed."""


class CommandFailed(TmuxError):  # noqa: N818 - reads as what happened
    """tmux has refused a command: most often the pane is gone."""


class TmuxUnresponsive(TmuxError):  # noqa: N818
    """A tmux server does not answer. Its terminals may well be alive."""
