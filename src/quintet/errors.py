"""Every error that Quintet raises on purpose.

QuintetError                one line for the user, exit code 1
├── ConfigError             a setting, a config file or a flag is wrong
├── TaskError               the task file lacks something
├── PromptError             a prompt text names a slot that does not exist
├── ProfileError            an agent profile is missing or malformed
└── StateError              the state file cannot be written or put aside

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
