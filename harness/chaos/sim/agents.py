"""Simulated agents: each takes its prompts one after the other, and each turn can go wrong in its own way."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quintet.roles import PEER_ANALYST, ROLES, TESTER, Role
from tests.stub.replies import ANALYST_APPROVED, FAIL, PASS, PROGRAMMER_APPROVED, SMOOTH
from tests.watch.scripted import REVISE

if TYPE_CHECKING:
    from harness.chaos.sim.server import SimulatedServer

BY_PROFILE: Final = {role.profile: role for role in ROLES}
STORIES: Final = ("smooth", "revised", "failed", "long")
"""straight on; a first review that says REVISE; a first test that FAILs; both"""
NO_VERDICT: Final = "I looked at it and it seems to be all right, more or less.\n"
WRONG_VERDICT: Final = "REVIEW_RESULT: APPROVED|REVISE\nRESULT: PASS|FAIL\nREVIEW_NOTES:\n- <artifact>\n"
HUGE: Final = "a line of a log that somebody has put into the reply\n" * 6000
LATE_SECONDS: Final = 8.0
LIMIT_SECONDS: Final = 3000.0
_REMINDERS: Final = ("Your turn has ended, but", "You are expected to carry out the request in this file")

MANNERS: Final = (
    "late", "empty", "huge", "pieces", "not UTF-8", "symlink", "directory", "silent", "hangs", "crashes",
    "no verdict", "wrong verdict", "asks permission", "rests before it writes", "its turn fails", "usage limit",
)  # fmt: skip
"""what can be wrong with a turn"""


def story_reply(story: str, role: Role, turn: int) -> str:
    """What a good agent replies to its nth prompt."""
    if role is PEER_ANALYST and turn == 1 and story in ("revised", "long"):
        return REVISE
    if role is TESTER and turn == 1 and story in ("failed", "long"):
        return FAIL
    return {PEER_ANALYST: ANALYST_APPROVED, TESTER: PASS}.get(role) or (
        PROGRAMMER_APPROVED if role.reviews else SMOOTH[role][0]
    )


def is_reminder(message: str) -> bool:
    return message.lstrip().startswith(_REMINDERS)


def response_path(message: str) -> Path | None:
    """The response file that a prompt names, directly or in the file that it points to."""
    pointed = re.match(r"Read the file (.+?) from its first line", message)
    if pointed:
        message = Path(pointed[1]).read_text(encoding="utf-8")
    commands = re.findall(r"^cat > (.+) <<'\w+'$", message, re.MULTILINE)
    return Path(shlex.split(commands[-1])[0]) if commands else None


@dataclass
class Agent:
    """One agent in its terminal."""

    server: "SimulatedServer"
    id: str
    role: Role
    provider: str
    session: str
    status: str = "idle"
    reason: str = ""
    turns: int = 0
    dispatches: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    screen: str = ""
    asking: bool = False
    failure: dict[str, str | None] | None = None
    life: int = 0
    """changes when whatever it had in mind is over"""

    @property
    def alive(self) -> bool:
        return self.status != "error"

    def end(self, reason: str) -> None:
        self.status, self.reason, self.life = "error", reason, self.life + 1

    def take(self, message: str) -> None:
        """A message was typed: the beginning of a turn, or of the next one."""
        if self.status in ("processing", "waiting_user_answer"):
            self.waiting.append(message)
            return
        self.turns += 1
        self.failure = None
        manner = self.server.manner_for(self)
        self.status = "processing"
        work = self.server.random.choice((0.0, 0.1, 0.4, 3.0))
        self._later(work, lambda: self._work(message, manner))

    def answered(self) -> None:
        """Somebody said yes."""
        if self.asking:
            self.asking, self.status = False, "processing"

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        life = self.life

        def act() -> None:
            if self.life == life and self.alive:
                action()

        self.server.clock.after(max(seconds, 0.001), act)

    def _work(self, message: str, manner: str) -> None:
        reply = self._reply(manner)
        path = response_path(message)
        self.server.misdeed(self.role, self.turns)
        match manner:
            case "asks permission":
                self.asking, self.status = True, "waiting_user_answer"
                self._until_answered(path, reply)
            case "crashes":
                self.end("it was ended by signal 9")
            case "hangs":
                self.server.hung.append(lambda: self._finish(path, reply))
            case "late" | "rests before it writes":
                self._rest()
                self._later(LATE_SECONDS if manner == "late" else 0.05, lambda: self._write(path, reply))
            case "pieces":
                self._in_pieces(path, reply)
            case "silent":
                self._rest()
            case "its turn fails":
                self._fail("server_error", "the stream was closed")
            case "usage limit":
                ends = datetime.fromtimestamp(self.server.clock.wall() + LIMIT_SECONDS, UTC)
                self._fail("usage_limit", "you have hit your usage limit", ends.isoformat())
            case _:
                self._finish(path, reply, manner)

    def _fail(self, kind: str, text: str, resets_at: str | None = None) -> None:
        """The turn ends without an answer, and the agent's record says why; CAO reads no records."""
        self.failure = {"kind": kind, "text": text, "resets_at": resets_at}
        self._rest()

    def _until_answered(self, path: Path | None, reply: bytes, tries: int = 60) -> None:
        """Where nobody answers, the user does in the end."""
        if self.asking and tries:
            self._later(1.0, lambda: self._until_answered(path, reply, tries - 1))
            return
        self.answered()
        self._finish(path, reply)

    def _reply(self, manner: str) -> bytes:
        """A reply that can be told from every other."""
        text = story_reply(self.server.story, self.role, self.turns)
        if manner == "no verdict":
            text = NO_VERDICT
        elif manner == "wrong verdict":
            text = WRONG_VERDICT
        elif manner == "huge":
            text += HUGE
        mark = f"\nWritten by {self.id} in turn {self.turns}.\n"
        if manner == "not UTF-8":
            return (text + mark).encode() + b"caf\xe9 \xff\xfe\x00 end\n"
        return (text + mark).encode()

    def _finish(self, path: Path | None, reply: bytes, manner: str = "") -> None:
        if path is not None:
            self._write(path, reply, manner)
        self._later(self.server.random.choice((0.0, 0.0, 0.3)), self._rest)

    def _in_pieces(self, path: Path | None, reply: bytes, part: int = 1) -> None:
        """Four pieces with pauses between them, all while at work."""
        if path is None or part > 4:
            self._rest()
            return
        self._write(path, reply[: len(reply) * part // 4], complete=part == 4)
        self._later(0.3, lambda: self._in_pieces(path, reply, part + 1))

    def _rest(self) -> None:
        self.status = "completed"
        if self.waiting:
            self.take(self.waiting.pop(0))

    def _write(self, path: Path | None, reply: bytes, manner: str = "", *, complete: bool = True) -> None:
        """Write the response file; where the system does not let it, the agent gives up."""
        if path is None:
            return
        disk = self.server.disk
        try:
            if manner == "empty":
                disk.written_by_agent(path, b"")
                return
            if manner == "directory":
                path.mkdir(parents=True, exist_ok=True)
                (path / "reply.md").write_bytes(reply)
                return
            if manner == "symlink":
                elsewhere = path.parent.parent / f"elsewhere-{self.id}.md"
                elsewhere.write_bytes(reply)
                path.unlink(missing_ok=True)
                path.symlink_to(elsewhere)
                return
            before = path.read_bytes() if path.is_file() else b""
            disk.written_by_agent(path, reply)
        except OSError:
            return
        if before in self.server.written:
            self.server.written.remove(before)  # it has replaced its own reply before anybody took it
        if complete and not path.is_symlink():
            self.server.written.append(reply)
