"""Why the server says no, each with its HTTP status.

ServerError
├── TmuxError               tmux is missing, too old, or has failed
│   └── Silent              a tmux server that is there does not answer
└── Refusal                 an answer to the client
    ├── BadRequest    400   a value that makes no sense here
    ├── NotFound      404   no such session or terminal
    ├── Conflict      409   not in this state
    ├── TooLong       413   more text than any agent would take
    └── NotTaken      504   typed, but the agent did not take it
"""

from typing import ClassVar

from quintet.errors import ServerError


class TmuxError(ServerError):
    """tmux is missing, too old, or has failed."""


class Silent(TmuxError):  # noqa: N818 - reads as what happened
    """A tmux server is there, but it does not answer: its terminals may well live."""


class Refusal(ServerError):  # noqa: N818 - its kinds have HTTP's names
    """An answer to the client: the request cannot be met."""

    status: ClassVar[int] = 500


class BadRequest(Refusal):
    """A value that makes no sense here."""

    status = 400


class NotFound(Refusal):
    """There is no such session or terminal."""

    status = 404


class Conflict(Refusal):
    """The terminal is not in a state for this."""

    status = 409


class TooLong(Refusal):
    """More text than any agent would take."""

    status = 413


class NotTaken(Refusal):
    """The message was typed, but nothing shows that the agent has taken it."""

    status = 504
