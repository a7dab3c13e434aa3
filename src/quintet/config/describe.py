"""Describe the settings for the help and for the page of settings: sections, defaults, allowed values."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from quintet.config.kinds import Choice, Counts, Globs, Paths, Prices, Seconds, VariableNames, WholeNumber
from quintet.config.table import TABLE, Row, Settings
from quintet.layout import STATE_FILE

Mark = Callable[[str], str]
"""how a value looks among words"""
TITLES: Final = {
    "": "What to do, and where",
    "limits": "Limits of the loop",
    "guard": "What roles may change, and what a verdict needs",
    "condensation": "What prompts carry along",
    "handoff": "Waiting for an agent",
    "post_processing": "After PASS",
    "workspace": "A worktree for the run",
    "sandbox": "What agents can reach",
    "people": "Waiting for people",
    "queue": "The task queue",
    "notifications": "Notifications",
}
"""the sections of the config file, in the order in which they are shown"""
_DEFAULTS: Final = {
    "wd": "the current directory",
    "state_file": f"{STATE_FILE} in the project",
    "resume": "unset",
    "prices": "unset",
    "queue_url": "a file in the user's state directory",
    "queue_accounts": "unset",
}
"""what the table cannot say as a value"""
_LIST: Final = '["tests/**", "check.sh"]'
_PATHS: Final = '["~/.config/tool", "/srv/data"]'
_NAMES: Final = '["BUILD_*", "CI_TOKEN"]'
_COUNTS: Final = '{"claude-1": 2}'
_PRICE: Final = '{"codex": {"input": 1.25, "cached": 0.125, "output": 10}}'


def sections() -> Iterator[tuple[str, list[Row]]]:
    """Each section's title and its settings."""
    found: dict[str, list[Row]] = {section: [] for section in TITLES}
    for row in TABLE:
        found[row.key.rpartition(".")[0]].append(row)
    yield from ((TITLES[section], rows) for section, rows in found.items())


def describe_default(row: Row, mark: Mark = str) -> str:
    """The default of a setting."""
    default: Any = getattr(Settings, row.name)
    if row.name in _DEFAULTS:
        return _DEFAULTS[row.name]
    if default in ("", ()):
        return "none"
    if isinstance(default, bool):
        return mark(str(default).lower())
    return mark(f"{default:g}" if isinstance(default, float) else str(default))


def describe_allowed(row: Row, mark: Mark = str) -> str:
    """The allowed values of a setting, where they are not obvious."""
    match row.kind:
        case Choice(names):
            other = f"; with {mark('api')} also what that server offers" if row.name == "provider" else ""
            return ", ".join(map(mark, names)) + other
        case WholeNumber(least, most):
            if most < WholeNumber.at_most:
                return f"{least} to {most}"
            return f"at least {least}" if least else ""
        case Seconds():
            return "seconds"
        case Prices():
            return f"an object such as {mark(_PRICE)}"
        case Counts():
            return f"an object such as {mark(_COUNTS)}"
        case Globs():
            return f"a list such as {mark(_LIST)}; in a variable with commas or line ends between them"
        case Paths():
            return f"a list such as {mark(_PATHS)}; in a variable with commas or line ends between them"
        case VariableNames():
            return f"a list such as {mark(_NAMES)}; in a variable with commas or line ends between them"
        case _:
            return ""
