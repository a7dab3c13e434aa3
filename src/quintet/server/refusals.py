"""Why the server refuses a request, each kind with its HTTP status."""

from typing import ClassVar

from quintet.errors import ServerError


class Refusal(ServerError):  # noqa: N818 - its kinds have HTTP's names
    """A request that cannot be met; its text is the answer to the client."""

    status: ClassVar[int] = 500


class BadRequest(Refusal):
    """A value is not allowed."""

    status = 400


class NotFound(Refusal):
    """There is no such session or terminal."""

    status = 404


class Conflict(Refusal):
    """The terminal is in a state that does not allow this."""

    status = 409


class TooLong(Refusal):
    """The text is longer than any agent accepts."""

    status = 413


class NotTaken(Refusal):
    """The message was typed, but nothing shows that the agent has taken it."""

    status = 504
