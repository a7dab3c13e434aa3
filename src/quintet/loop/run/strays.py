"""What agents leave running when their turns are over: it is ended before somebody judges their work."""

from contextlib import suppress
from typing import Final

from quintet.api.backend import Backend
from quintet.errors import ApiError
from quintet.loop.record.store import RunStore
from quintet.prose import plural
from quintet.roles import ROLES, Role

_MOST_TOLD: Final = 3


def end_strays(backend: Backend, store: RunStore, but: Role | None = None) -> None:
    """End what the turns of all roles, or of all but one, have left running, and tell of it."""
    if not store.settings.end_strays:
        return
    state, found = store.state, dict[str, list[str]]()
    with suppress(ApiError):  # a server that does not answer now is found out by the prompt
        found = backend.end_strays(state.session_name, state.terminals[but.name].id if but else "")
    for role in ROLES:
        if commands := found.get(state.terminals[role.name].id):
            named = ", ".join(commands[:_MOST_TOLD]) + (" and others" if commands[_MOST_TOLD:] else "")
            store.warn(f"{role} had left {plural(len(commands), 'command')} running, now ended: {named}")
