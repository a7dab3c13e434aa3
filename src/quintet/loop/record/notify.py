"""Notifications to somebody who is away: by ntfy, a webhook or a command.

They never hold up a run, and their failure is only a warning.
"""

import hashlib
import hmac
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import httpx

from quintet import command
from quintet.config import Settings
from quintet.loop import journal
from quintet.loop.decide.state import GATES
from quintet.own_programs import trusted_environment
from quintet.prose import plural
from quintet.roles import in_words

_HTTP_SECONDS: Final = 5.0
_COMMAND_SECONDS: Final = 60.0
_FLUSH_SECONDS: Final = 5.0
"""how long the end of a run waits for what is under way"""
PAUSES: Final = (1.0, 5.0, 30.0)
"""seconds before each further try"""
_MAY_PASS: Final = frozenset({408, 425, 429})
"""HTTP codes of a refusal that may not be the last word"""
SIGNATURE: Final = "X-Quintet-Signature"
STARTED: Final = "started"


@dataclass(frozen=True)
class Notification:
    """One thing that somebody who is away wants to know."""

    event: str
    """started, waiting, question, limit, round_failed, reviews_used_up, stopped or finished"""
    text: str
    """in words"""
    project: str
    """the name of the project's folder"""
    folder: str
    run: str
    at: str
    """when, in UTC"""
    status: str = ""
    """how the run has ended: PASS or FAIL"""
    link: str = ""
    """the run on the dashboard, where the settings name its address"""

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False).encode("utf-8", "replace")


class NotTold(Exception):  # noqa: N818 - reads as what happened
    """Why a notification was not taken; `may_pass` where another try may help."""

    def __init__(self, why: str, *, may_pass: bool = False) -> None:
        super().__init__(why)
        self.may_pass = may_pass


class _Channel:
    """One way to tell people, with a thread of its own: one that hangs holds up nothing else."""

    def __init__(self, name: str, send: Callable[[Notification], None], failed: Callable[[str], None]) -> None:
        self._name, self._send, self._failed = name, send, failed
        self._waiting: queue.SimpleQueue[Notification] = queue.SimpleQueue()
        self._open = 0
        """notifications that are neither sent nor given up"""
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def tell(self, notification: Notification) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        with self._changed:
            self._open += 1
        self._waiting.put(notification)

    def close(self, deadline: float) -> None:
        """Try once more what waits for another try, and wait for what is under way."""
        self._closing.set()
        with self._changed:
            while self._open and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            if self._open:
                self._failed(f"{plural(self._open, 'notification')} not sent in time to {self._name}")

    def _work(self) -> None:
        while True:
            notification = self._waiting.get()
            if why := self._try(notification):
                self._failed(f"notification not sent to {self._name}: {why}")
            with self._changed:
                self._open -= 1
                self._changed.notify_all()

    def _try(self, notification: Notification) -> str:
        """Send it, again where that fails; why it was not sent, or nothing."""
        for pause in (*PAUSES, None):
            is_last = pause is None or self._closing.is_set()
            try:
                self._send(notification)
            except NotTold as error:
                if is_last or not error.may_pass:
                    return str(error)
                self._closing.wait(pause)
            else:
                return ""
        return ""


class Notifier:
    """Tells of a run by all channels that the settings name."""

    def __init__(self, settings: Settings, run_id: str, warn: Callable[[str], None]) -> None:
        self._project, self._run = settings.workspace.project, run_id
        self._dashboard = settings.notify_link
        self._warn = warn
        self._failed: queue.SimpleQueue[str] = queue.SimpleQueue()
        """told at the next event, in the thread of the run: the journal has one writer"""
        self._channels = [_Channel(name, send, self._failed.put) for name, send in _channels(settings)]

    def __call__(self, event: journal.Event) -> None:
        self._tell_failures()
        if not self._channels or not (told := _told(event)):
            return
        kind, text = told
        status = event.status if isinstance(event, journal.RunFinished) else ""
        project = self._project
        link = f"{self._dashboard}/#run={self._run}" if self._dashboard else ""
        notification = Notification(kind, text, project.name, str(project), self._run, event.at, status, link)
        for channel in self._channels:
            channel.tell(notification)

    def flush(self) -> None:
        """Give what is under way a moment to arrive."""
        deadline = time.monotonic() + _FLUSH_SECONDS
        for channel in self._channels:
            channel.close(deadline)
        self._tell_failures()

    def _tell_failures(self) -> None:
        while not self._failed.empty():
            self._warn(self._failed.get())


def _channels(settings: Settings) -> Iterator[tuple[str, Callable[[Notification], None]]]:
    """The name of each channel for messages, and how it sends."""
    if settings.ntfy_topic:
        url = f"{settings.ntfy_url}/{quote(settings.ntfy_topic, safe='')}"
        yield url, partial(_send_ntfy, url)
    if settings.notify_webhook:
        # without its path and query, where people put their tokens
        name = f"the webhook at {urlsplit(settings.notify_webhook).netloc.rpartition('@')[2]}"
        yield name, partial(_send_webhook, settings.notify_webhook, settings.notify_secret_file)
    if settings.notify_cmd:
        yield "NOTIFY_CMD", partial(_send_command, settings.notify_cmd, settings.workspace.project)


def _send_ntfy(url: str, notification: Notification) -> None:
    if notification.event != STARTED:  # whoever has a topic on the phone has started the run
        headers = {"Title": "Quintet"} | ({"Click": notification.link} if notification.link else {})
        _post(url, f"{notification.project}: {notification.text}".encode("utf-8", "replace"), headers)


def _send_webhook(url: str, secret_file: str, notification: Notification) -> None:
    body = notification.to_json()
    headers = {"Content-Type": "application/json"}
    if secret_file:
        try:
            secret = Path(secret_file).expanduser().read_bytes().strip()
        except OSError as error:
            raise NotTold(f"{secret_file}: cannot be read ({error.strerror})") from None
        headers[SIGNATURE] = f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
    _post(url, body, headers)


def _post(url: str, body: bytes, headers: dict[str, str]) -> None:
    try:
        # its body is left alone: one without an end would fill the memory of the run
        with httpx.stream("POST", url, content=body, headers=headers, timeout=_HTTP_SECONDS) as answer:
            pass
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotTold(str(error) or type(error).__name__, may_pass=True) from None
    if not answer.is_success:
        may_pass = answer.is_server_error or answer.status_code in _MAY_PASS
        raise NotTold(f"it answered {answer.status_code} {answer.reason_phrase}".rstrip(), may_pass=may_pass)


def _send_command(line: str, cwd: Path, notification: Notification) -> None:
    outcome = command.run(line, cwd, _COMMAND_SECONDS, trusted_environment(), given=notification.to_json())
    if outcome.exit_code:
        raise NotTold(f"exit code {outcome.exit_code}: {outcome.last_line}")


def _told(event: journal.Event) -> tuple[str, str] | None:
    """The kind of a notification and its words; None for what nobody is told of."""
    match event:
        case journal.RunStarted(task_file=file):
            return STARTED, f"started{f' with {Path(file).name}' if file else ''}"
        case journal.RunResumed():
            return STARTED, "goes on"
        case journal.RunFinished(status=status, round=number):
            return "finished", f"{status} after round {number}"
        case journal.RunStopped(reason=reason):
            return "stopped", f"stopped: {reason}"
        case journal.PermissionAsked(accepted=False) | journal.PermissionAsked(question=True):
            return "question", f"{in_words(event.role)} {_question(event)}"
        case journal.ApprovalAsked(gate=gate):
            return "waiting", f"waits for you to approve the {GATES.get(gate, gate)}"
        case journal.LimitReached(role=role, text=text, until=until):
            return "limit", f"{in_words(role)} waits until {until} for the end of a limit: {text}"
        case journal.ReviewsUsedUp(phase=phase, cycles=cycles):
            return "reviews_used_up", f"the {phase} phase goes on without approval after {plural(cycles, 'review')}"
        case journal.RoundFailed(round=number, last=False):
            return "round_failed", f"round {number} has failed, and the next one begins"
    return None


def _question(asked: journal.PermissionAsked) -> str:
    if asked.reason and not asked.accepted:
        return f"cannot start without you: {asked.reason}"
    what = "something that only you can answer," if asked.question else "for permission"
    return f"asks {what} in terminal {asked.terminal}"
