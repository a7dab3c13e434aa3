"""The names of sessions and profiles: which are allowed, and which session belongs to which run."""

import re
from typing import Final

from quintet.server.refusals import BadRequest

PREFIX: Final = "cao-"
"""how the names of all sessions begin that no run has given, as clients of CAO expect"""
LONGEST_NAME: Final = 64
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_RUN = re.compile(rf"(?:{PREFIX})?(\d{{8}}-\d{{6}}-[0-9a-f]{{6}})-[0-9a-f]{{4}}")
"""the name that a run gives to its session; in earlier versions it had the prefix, too"""


def run_id_of(session: str) -> str:
    """The id of the run that has named a session; empty for any other session."""
    found = _RUN.fullmatch(session)
    return found[1] if found else ""


def session_name(name: str) -> str:
    """The full name of a session: a run's own as it is, any other with the prefix.

    Nothing that tmux reads as a target or an option is allowed.
    """
    full = name if name.startswith(PREFIX) or run_id_of(name) else PREFIX + name
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(full):
        raise BadRequest(f"Invalid session_name: {name[:80]!r}")
    return full


def is_session_name(name: str) -> bool:
    """Whether this is the full name of a session."""
    return _NAME.fullmatch(name) is not None and (name.startswith(PREFIX) or bool(run_id_of(name)))


def profile_name(name: str) -> str:
    """A profile's name that can be neither a path nor an option."""
    if not _NAME.fullmatch(name):
        raise BadRequest(f"Invalid agent_profile: {name[:80]!r}")
    return name
