"""How the server drives Codex."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

from quintet.actions import TurnActions
from quintet.providers.base import Dialog, Provider, TurnRecord
from quintet.providers.codex import CODEX, dialogs, launch, screen
from quintet.providers.codex.actions import RolloutCalls, read_call
from quintet.providers.codex.launch import key_variables
from quintet.providers.codex.login import find_login
from quintet.providers.codex.record import Rollout, read_line
from quintet.providers.codex.rollouts import find_rollout
from quintet.providers.file_follower import Follower, size_of
from quintet.providers.registration import Registration
from quintet.providers.screen import Screen
from quintet.providers.startup_dialogs import find_startup_dialog

COLLAPSED: Final = 1000
"""characters above which a paste is shown as a note; Codex takes shorter ones apart, and trims them"""
INVISIBLE: Final = "\u200b"
_MENTION = re.compile(r"(?:^|\s)[@$]\S*$")


class CodexProvider(Provider):
    """The Codex CLI of OpenAI."""

    registration: Registration = CODEX
    tested: tuple[str, str] = ("0.66.0", "0.166.0")
    prompts: ClassVar[tuple[str, ...]] = ("› ",)
    commands: ClassVar[frozenset[str]] = frozenset({"/rename", "/quit", "/exit"})
    exit_command: ClassVar[str] = "/quit"

    sets_permissions = staticmethod(launch.sets_permissions)
    try_flags = staticmethod(launch.try_flags)
    login = staticmethod(find_login)
    read_screen = staticmethod(screen.read_screen)
    screen_overrides_record = staticmethod(screen.screen_overrides_record)
    asks_for_permission = staticmethod(dialogs.asks_for_permission)
    read_reply = staticmethod(screen.read_reply)
    launch = staticmethod(
        launch.plan
    )  # the last one: from here on the class body has this under the name of the module

    def variables(self, env: Mapping[str, str]) -> tuple[str, ...]:
        return (*super().variables(env), *key_variables(env))

    def startup_dialog(self, screen_: Screen, folder: Path) -> Dialog | None:  # noqa: ARG002 - the hook's signature
        if dialogs.is_starting(screen_.text):
            return Dialog()
        return find_startup_dialog(screen_.text, screen.read_screen(screen_), dialogs.KNOWN, dialogs.OTHER)

    def escape(self, message: str) -> str:
        """Keep the first word from being a command, and the last from opening a list that would take the Enter.

        Codex trims a short message, so that blanks around it cost nothing. They do not help with `!`, which it runs
        in a shell whatever stands before it, in releases before 0.149 even out of a long paste.
        """
        before = " " if message.startswith("/") else INVISIBLE if message.lstrip().startswith("!") else ""
        after = " " if len(message) < COLLAPSED and _MENTION.search(message) else ""
        return f"{before}{message}{after}"

    def holds_draft(self, screen_: Screen, pasted: str) -> bool:
        return super().holds_draft(screen_, pasted.removeprefix(INVISIBLE))

    def record_position(self, folder: Path) -> int:
        follower = _followers(folder).find()
        return size_of(follower.path) if follower is not None else 0

    def has_record(self, folder: Path) -> bool:
        return _followers(folder).find() is not None

    def read_record(self, folder: Path, since: int) -> TurnRecord | None:
        follower = _followers(folder).find()
        return follower.read().since(since) if follower is not None else None

    def read_actions(self, folder: Path, since: int) -> TurnActions | None:
        calls = _followers(folder).calls(since)
        return calls.log.actions if calls is not None and calls.begun else None


class _Search:
    """Looks for a terminal's rollout until it is there."""

    def __init__(self, folder: Path) -> None:
        self._notes = launch.Notes.read(folder)
        self._not_ours: dict[Path, int] = {}
        self._found: Follower[Rollout] | None = None
        self._calls: Follower[RolloutCalls] | None = None

    def find(self) -> Follower[Rollout] | None:
        notes = self._notes
        if self._found is None and notes is not None:
            path = find_rollout(Path(notes.home), notes.mark, notes.launched, self._not_ours, notes.below)
            self._found = Follower(path, Rollout(), read_line, below=notes.below) if path is not None else None
        return self._found

    def calls(self, since: int) -> RolloutCalls | None:
        """The calls of the last turn after a position."""
        found = self.find()
        if found is None:
            return None
        if self._calls is None or self._calls.since != since:
            self._calls = Follower(found.path, RolloutCalls(), read_call, since, found.below)
        return self._calls.read()


@lru_cache(maxsize=256)
def _followers(folder: Path) -> _Search:
    return _Search(folder)


PROVIDER: Final = CodexProvider()
