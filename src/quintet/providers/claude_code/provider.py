"""How the server drives Claude Code."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

from quintet.actions import TurnActions
from quintet.api.status import TerminalStatus
from quintet.providers import editor
from quintet.providers.base import Dialog, Login, Provider, TurnRecord
from quintet.providers.claude_code import CLAUDE_CODE, dialogs, launch, screen
from quintet.providers.claude_code.actions import Transcripts
from quintet.providers.claude_code.record import Hooks, TranscriptTurn, read_hook, read_transcript
from quintet.providers.file_follower import Follower, size_of
from quintet.providers.private_home import PrivateHome
from quintet.providers.registration import Registration
from quintet.providers.screen import Screen
from quintet.providers.screen_rows import rows_of
from quintet.providers.startup_dialogs import find_startup_dialog, last_dialog

KEYS: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
)
"""variables that stand for a login"""


class ClaudeCodeProvider(Provider):
    """The Claude Code CLI of Anthropic."""

    registration: Registration = CLAUDE_CODE
    tested: tuple[str, str] = ("2.0.37", "2.1.325")
    prompts: ClassVar[tuple[str, ...]] = ("❯ ", "> ")
    commands: ClassVar[frozenset[str]] = frozenset({"/rename", "/exit", "/quit"})
    accept_key: ClassVar[str] = "1"

    sets_permissions = staticmethod(launch.sets_permissions)
    try_flags = staticmethod(launch.try_flags)
    read_screen = staticmethod(screen.read_screen)
    asks_for_permission = staticmethod(dialogs.asks_for_permission)
    read_reply = staticmethod(screen.read_reply)
    launch = staticmethod(
        launch.plan
    )  # the last one: from here on the class body has this under the name of the module

    def login(self, program: str, env: Mapping[str, str]) -> Login:  # noqa: ARG002 - the hook's signature
        found = launch.has_login(env) or any(env.get(name) for name in KEYS)
        return Login.FOUND if found else Login.NOT_SEEN

    def startup_dialog(self, screen_: Screen, folder: Path) -> Dialog | None:
        has_login = (folder / launch.LOGIN_FILE).exists()
        known = (*dialogs.KNOWN, dialogs.KEY_OR_LOGIN if has_login else dialogs.KEY_ALONE)
        return find_startup_dialog(screen_.text, screen.read_screen(screen_), known, dialogs.OTHER)

    def dismiss_keys(self, screen_: Screen) -> tuple[str, ...]:
        if screen.read_screen(screen_) is not TerminalStatus.WAITING_USER_ANSWER:
            return ()
        shown = " ".join(" ".join(last_dialog(rows_of(screen_.text))).split())
        return ("Escape",) if dialogs.OFFER.search(shown) else ()

    def editor_key(self, folder: Path, message: str) -> str | None:
        """Claude Code makes four blanks of a tab in what is typed or pasted, not in what its editor gives it."""
        return "C-g" if "\t" in message and editor.is_usable(folder) else None

    def holds_draft(self, screen_: Screen, pasted: str) -> bool:
        return super().holds_draft(screen_, pasted) or screen.shows_part_of(screen_, pasted)

    def record_position(self, folder: Path) -> int:
        return size_of(folder / launch.HOOKS_FILE)

    def has_record(self, folder: Path) -> bool:
        return size_of(folder / launch.HOOKS_FILE) > 0

    def read_record(self, folder: Path, since: int) -> TurnRecord | None:
        return _record(folder).read(since)

    def read_actions(self, folder: Path, since: int) -> TurnActions | None:
        return _record(folder).actions(since)


class _Record:
    """The two files of a terminal: its hooks' and the transcript that they name."""

    def __init__(self, folder: Path) -> None:
        self._hooks = Follower(folder / launch.HOOKS_FILE, Hooks(), read_hook, below=folder)
        self._home = PrivateHome.of(folder)
        self._transcript: Follower[TranscriptTurn] | None = None
        self._calls: Transcripts | None = None

    def read(self, since: int) -> TurnRecord | None:
        hooks = self._hooks.read()
        if hooks.begun < since:
            return None
        path = self._find(hooks.transcript)
        if path is not None and (self._transcript is None or self._transcript.path != path):
            self._transcript = Follower(path, TranscriptTurn(), read_transcript, below=self._below)
        turn = self._transcript.read() if self._transcript is not None else TranscriptTurn()
        record = hooks.since(since, turn)
        return replace(record, typed=hooks.previous >= since) if record is not None else None

    def actions(self, since: int) -> TurnActions | None:
        hooks = self._hooks.read()
        path = self._find(hooks.transcript)
        if hooks.begun < since or path is None:
            return None
        if self._calls is None or self._calls.path != path:
            self._calls = Transcripts(path, self._below)
        return self._calls.actions(hooks.prompt)

    @property
    def _below(self) -> Path | None:
        return self._home.folder if self._home else None

    def _find(self, transcript: str) -> Path | None:
        """The transcript that the hooks name; in a sandbox one in the agent's own home, and no other."""
        if not transcript:
            return None
        return self._home.outside(transcript) if self._home else Path(transcript)


@lru_cache(maxsize=256)
def _record(folder: Path) -> _Record:
    return _Record(folder)


PROVIDER: Final = ClaudeCodeProvider()
