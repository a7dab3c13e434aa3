"""What the server needs to know about an agent CLI: the methods that every provider has, and their values."""

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, NamedTuple

from quintet.actions import TurnActions
from quintet.api.status import FailureKind, TerminalStatus
from quintet.providers.private_home import PrivateHome
from quintet.providers.registration import Registration
from quintet.providers.screen import Screen
from quintet.tokens import TokenCount


class Login(StrEnum):
    """Whether the user is logged in, as far as that can be seen."""

    FOUND = "logged in"
    NOT_NEEDED = "needs no login"
    MISSING = "not logged in"
    NOT_SEEN = "no login was found"
    """there may be one that cannot be seen"""
    UNKNOWN = "its login cannot be seen"


class StartRefused(NamedTuple):
    """Why a program does not start with the arguments of a run, and what to do."""

    said: str
    """what it printed"""
    mend: str
    """what the user can do"""


@dataclass(frozen=True)
class Launch:
    """One terminal that is about to be started."""

    terminal_id: str
    profile: str
    """the profile's name; quintet.roles knows which role it belongs to"""
    instructions: str
    """the profile's text: the role of the agent"""
    folder: Path
    """the terminal's private folder, kept as long as the terminal"""
    cwd: Path
    env: Mapping[str, str]
    """the environment that the program will have"""
    model: str = ""
    args: tuple[str, ...] = ()
    """the user's own arguments for the program"""
    previous: Path | None = None
    """the private folder of a lost terminal, whose conversation goes on where the program can do that"""
    asks: bool = False
    """whether the agent shall ask before it acts; else it runs unattended"""
    home: PrivateHome | None = None
    """the home that the program has in a sandbox; None: that of the user"""
    before: tuple[str, ...] = ()
    """the words of a sandbox that the program is tried in"""


@dataclass(frozen=True)
class LaunchPlan:
    """How to start the program. Every user of the machine can see the command line: it must not hold a prompt."""

    argv: tuple[str, ...]
    env: Mapping[str, str | None] = field(default_factory=dict)
    """changes to the environment; None takes a variable away"""
    files: Mapping[str, str] = field(default_factory=dict)
    """files to write into the terminal's folder before the start, by relative path"""
    continues: bool = False
    """whether the lost terminal's conversation goes on"""
    programs: tuple[str, ...] = ()
    """programs and scripts that it starts by their paths: a sandbox shows them, with their installations"""
    reads: tuple[str, ...] = ()
    """other files that it reads: a sandbox shows them"""


@dataclass(frozen=True)
class RecordedFailure:
    """Why a turn ended without an answer."""

    kind: FailureKind
    text: str
    """what the agent says about it"""
    resets_at: float | None = None
    """when a limit ends, in seconds since the epoch"""

    def __str__(self) -> str:
        has_no_name = self.kind in (FailureKind.OTHER, FailureKind.INTERRUPTED)
        return self.text if has_no_name else f"{self.kind.replace('_', ' ')}: {self.text}"


@dataclass(frozen=True)
class TurnRecord:
    """What the agent's own record says of the last turn that began after a position."""

    ended: bool
    last_message: str | None = None
    failure: RecordedFailure | None = None
    usage: TokenCount | None = None
    final: bool = True
    """False where the agent may still go on; then its screen shows work"""
    typed: bool = False
    """whether another prompt came after the first one since the position: somebody typed it in the terminal"""
    note: str = ""
    """why a turn that goes on may take long, where that is known"""


@dataclass(frozen=True)
class Dialog:
    """A question at start-up, before the agent takes prompts."""

    keys: tuple[str, ...] = ()
    """the tmux keys that answer it"""
    message: str = ""
    """what only the user can decide; used where there are no keys"""


class Provider(ABC):
    """One agent CLI. A provider has no state: each method gets all that it needs."""

    registration: Registration
    tested: tuple[str, str] = ("", "")
    """the oldest and the newest release that was tried; empty where none was"""
    prompts: ClassVar[tuple[str, ...]]
    """how the composer's first line begins, for instance "› " """
    commands: ClassVar[frozenset[str]] = frozenset()
    """slash commands that are passed on as commands; any other first line is text"""
    exit_command: ClassVar[str] = "/exit"
    accept_key: ClassVar[str] = "y"
    """the tmux key that says yes to a permission prompt"""
    decline_key: ClassVar[str] = "Escape"
    """the tmux key that says no to one"""
    clear_keys: ClassVar[tuple[str, ...]] = ("C-u",)
    """the tmux keys that take a line out of the composer; pressed until it is empty"""
    start_seconds: ClassVar[float] = 90.0
    """how long the program may take until it is ready"""
    settle_seconds: ClassVar[float] = 1.5
    """how long after a prompt an unchanged screen may be one that has not begun yet"""

    doorbell: ClassVar[str] = ""
    """the tmux key on which the program takes a prompt from the file `providers.editor.INPUT` in its terminal's folder;
    empty where prompts are typed"""
    quiet_seconds: ClassVar[float] = 2.0
    """how long a pane without a record must be silent until its turn is over"""

    @property
    def name(self) -> str:
        return self.registration.name

    def find(self, env: Mapping[str, str], cwd: Path) -> str | None:  # noqa: ARG002 - the hook's signature
        """Where its program is on this machine; None where it is not installed, or is part of Quintet."""
        name = self.registration.program
        return shutil.which(name, path=env.get("PATH")) if name else None

    def variables(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The variables for its model and its own settings, which it gets in a sandbox too; `*` is any letters."""
        return self.registration.variables_in(env)

    @abstractmethod
    def launch(self, launch: Launch) -> LaunchPlan:
        """How to start the program."""

    @abstractmethod
    def read_screen(self, screen: Screen) -> TerminalStatus:
        """The status that a screen shows. Whether a prompt was sent is not its question: the server knows that."""

    def screen_overrides_record(self, screen: Screen) -> bool:  # noqa: ARG002 - the hook's signature
        """Whether a screen that shows work is right against a record that says that the turn has ended."""
        return True

    def sets_permissions(self, args: Sequence[str]) -> bool:  # noqa: ARG002 - the hook's signature
        """Whether the user's own arguments say what the agent may do: then Quintet adds nothing about it."""
        return False

    def login(self, program: str, env: Mapping[str, str]) -> Login:  # noqa: ARG002 - the hook's signature
        """Whether the user is logged in, as far as that can be seen on this machine."""
        return Login.NOT_NEEDED

    def try_flags(self, launch: Launch) -> StartRefused | None:  # noqa: ARG002
        """Start the program with a run's flags so that it ends at once, before it contacts its model."""
        return None

    def read_reply(self, text: str) -> str:
        """The last answer in the scrollback, where there is no record; empty where none is found."""
        return text.strip()

    def startup_dialog(self, screen: Screen, folder: Path) -> Dialog | None:  # noqa: ARG002 - the hook's signature
        """The start-up dialog on the screen, if any; the folder is that of the launch."""
        return None

    def is_permission(self, screen: Screen) -> bool:
        """Whether the dialog on the screen asks for permission to do one thing: the only kind that a yes answers."""
        asked = self.read_screen(screen) is TerminalStatus.WAITING_USER_ANSWER
        return asked and self.asks_for_permission(screen.text)

    def asks_for_permission(self, text: str) -> bool:  # noqa: ARG002
        """Whether a screen with a dialog is one that `is_permission` means."""
        return False

    def dismiss_keys(self, screen: Screen) -> tuple[str, ...]:  # noqa: ARG002
        """The tmux keys that close a dialog which needs no answer, for instance an offer at a usage limit."""
        return ()

    def has_continued(self, folder: Path) -> bool:  # noqa: ARG002
        """Whether a terminal that was to go on with a lost one's conversation does so, now that it is ready."""
        return True

    def record_position(self, folder: Path) -> int:  # noqa: ARG002
        """Where the agent's record ends now: a turn that begins later is after this position."""
        return 0

    def has_record(self, folder: Path) -> bool:  # noqa: ARG002
        """Whether the agent keeps a record of this terminal's turns: then a turn that is not in it has not begun."""
        return False

    def read_record(self, folder: Path, since: int) -> TurnRecord | None:  # noqa: ARG002
        """The last turn that began after a position; None where none did, or where there is no record."""
        return None

    def read_actions(self, folder: Path, since: int) -> TurnActions | None:  # noqa: ARG002
        """What the agent did in the last turn that began after a position; None where no record tells."""
        return None

    def is_command(self, message: str) -> bool:
        """Whether a message is one of the program's own commands."""
        return "\n" not in message and message.split(" ", 1)[0] in self.commands

    def escape(self, message: str) -> str:
        """The message as it must be pasted so that its first line is text and no command."""
        return " " + message if message[:1] in ("/", "!", "@", "#") else message

    def editor_key(self, folder: Path, message: str) -> str | None:  # noqa: ARG002
        """The tmux key that opens the program's editor (see `providers.editor`), for a message that needs it."""
        return None

    def draft(self, screen: Screen) -> str:
        """The text in the composer; empty where there is none, or where that is unknown.

        A placeholder looks like a text. The difference is the cursor: it is before a placeholder and behind a text.
        """
        if screen.cursor is None:
            return ""
        column, row = screen.cursor
        rows = screen.text.split("\n")[: row + 1]
        for at in range(len(rows) - 1, -1, -1):
            prompt = self._prompt_of(rows[at])
            if prompt is not None:
                typed = [rows[at][len(prompt) :], *(line[len(prompt) :] for line in rows[at + 1 :])]
                return ("\n".join(typed) or " ") if at < row or column > len(prompt) else ""
            if rows[at].strip() and not rows[at].startswith("  "):
                break  # the cursor is not in the composer
        return ""

    def _prompt_of(self, line: str) -> str | None:
        return next((glyph for glyph in self.prompts if line.startswith(glyph.rstrip())), None)

    def holds_draft(self, screen: Screen, pasted: str) -> bool:
        """Whether the composer still shows the pasted text, or a note in its place."""
        lines = screen.text.rstrip().split("\n")
        for line in reversed(lines):
            prompt = self._prompt_of(line)
            if prompt is not None:
                return _shows(line[len(prompt.rstrip()) :], pasted)
        return False


_PASTED = re.compile(r"\[\s*Pasted\b", re.IGNORECASE)


def _shows(composer: str, pasted: str) -> bool:
    shown = " ".join(composer.split())
    if not shown:
        return False
    if _PASTED.search(shown):
        return True
    first = next((" ".join(line.split()) for line in pasted.split("\n") if line.strip()), "")
    return bool(first) and (first.startswith(shown) or shown.startswith(first))
