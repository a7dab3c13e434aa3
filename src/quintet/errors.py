"""Every error that Quintet raises on purpose.

QuintetError                one line for the user, exit code 1
├── ConfigError             a setting, a config file or a flag is wrong
├── TaskError               the task file lacks something
├── PromptError             a prompt text names a slot that does not exist
├── ProfileError            an agent profile is missing or malformed
├── StateError              the state file cannot be written or put aside
├── RunError                a run cannot start or go on
│   ├── AgentError          an agent's terminal has failed
│   │   └── TurnFailure     ... or only its turn: the model did not answer, a limit is reached
│   ├── NoResponse          an agent is idle and has written no response (also a RuntimeError)
│   ├── ResponseTimeout     an agent is still at work when its time is up (also a TimeoutError)
│   └── StoppedOnPurpose    the run stops before its next prompt, and can go on later
│       ├── TokensUsedUp    ... because it has reached its limit of tokens (exit code 3)
│       ├── TimeUsedUp      ... of time (exit code 4)
│       ├── CostUsedUp      ... of money (exit code 5)
│       └── Paused          ... because a person wants a pause (exit code 6)
├── GitError                git cannot be run, or failed
├── NotGuarded              what agents change in a project cannot be watched
│   └── TooLarge            ... because its snapshot takes too long
├── SandboxError            agents cannot be confined on this machine
├── ServerError             our own terminal server cannot do what was asked of it
└── ApiError                the terminal server did not do what it was asked
    ├── PassingFault        it cannot be reached, or fails in a way that may pass
    │   └── OutcomeUnknown  ... after the request may have taken effect
    │       └── NotJson     it answered something that is no JSON object
    │           └── Torn    ... but the beginning of one
    ├── TerminalGone        it does not know the terminal
    └── Refused             it refuses the request

Anything else that escapes is a bug and keeps its traceback.
"""


class QuintetError(Exception):
    """Something the user can understand and mend; its text is one clear line."""


class ConfigError(QuintetError):
    """A setting, a config file or a flag is wrong."""


class TaskError(QuintetError):
    """The task file lacks something."""


class PromptError(QuintetError):
    """A prompt text names a slot that does not exist."""


class ProfileError(QuintetError):
    """An agent profile is missing or malformed."""


class StateError(QuintetError):
    """The state file cannot be written or put aside."""


class RunError(QuintetError):
    """A run cannot start or go on."""


class AgentError(RunError, RuntimeError):
    """An agent's terminal has failed."""


class TurnFailure(AgentError):  # noqa: N818
    """An agent's turn has ended without an answer; the agent itself is there."""

    def __init__(self, text: str, kind: str = "", resets_at: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.resets_at = resets_at
        """when a limit ends, in seconds since the epoch"""


class NoResponse(RunError, RuntimeError):  # noqa: N818 - reads as what happened
    """An agent is idle and has written no response."""


class ResponseTimeout(RunError, TimeoutError):  # noqa: N818
    """An agent is still at work when its time is up."""


class StoppedOnPurpose(RunError):  # noqa: N818
    """The run stops before its next prompt, and can go on later."""

    exit_code = 1


class TokensUsedUp(StoppedOnPurpose):
    """The run has reached its limit of tokens."""

    exit_code = 3


class TimeUsedUp(StoppedOnPurpose):
    """The run has reached its limit of time at work."""

    exit_code = 4


class CostUsedUp(StoppedOnPurpose):
    """The run has reached its limit of money."""

    exit_code = 5


class Paused(StoppedOnPurpose):
    """A person wants the run to pause."""

    exit_code = 6


class GitError(QuintetError):
    """Git cannot be run, or a command of it failed."""


class QueueError(QuintetError):
    """The queue of tasks cannot do what was asked of it."""


class NoQueue(QueueError):  # noqa: N818 - reads as what happened
    """There is no queue where it was looked for."""


class DatabaseAway(QueueError):  # noqa: N818 - reads as what happened
    """The queue's database does not answer; that may pass."""


class NotGuarded(QuintetError):  # noqa: N818
    """There is no snapshot of a project: it is in no repository, or it cannot be read or stored."""


class TooLarge(NotGuarded):
    """A snapshot takes longer than it may."""


class SandboxError(QuintetError):
    """Agents cannot be confined on this machine."""

    def __init__(self, found: str, fix: str) -> None:
        super().__init__(f"SANDBOX=on: {found}; {fix}")
        self.found, self.fix = found, fix


class ServerError(QuintetError):
    """Our own terminal server cannot do what was asked of it."""


class ApiError(QuintetError):
    """The terminal server did not do what it was asked."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail
        """the server's own words"""


class PassingFault(ApiError):  # noqa: N818
    """The server cannot be reached, or fails in a way that may pass."""


class OutcomeUnknown(PassingFault):
    """A passing fault after which the request may have taken effect."""


class NotJson(OutcomeUnknown):
    """The server's answer is no JSON object."""


class Torn(NotJson):
    """The server's answer is the beginning of a JSON object."""


class TerminalGone(ApiError):  # noqa: N818
    """The server does not know the terminal."""


class Refused(ApiError):  # noqa: N818
    """The server refuses the request."""
