"""Notifications to an ntfy topic. They never hold up a run, and their failure is only a warning."""

import threading
import time
from collections.abc import Callable
from urllib.parse import quote

import httpx

from quintet.config import Settings
from quintet.loop.journal import Event, LimitReached, PermissionAsked, ReviewsUsedUp, RunFinished, RunStopped
from quintet.prose import plural
from quintet.roles import in_words

_TIMEOUT = 5.0
_FLUSH = 2.0


class Notifier:
    """Tells a topic what somebody who is away would want to know."""

    def __init__(self, settings: Settings, warn: Callable[[str], None]) -> None:
        self._url = f"{settings.ntfy_url}/{quote(settings.ntfy_topic, safe='')}" if settings.ntfy_topic else ""
        self._project = settings.workspace.project.name
        self._warn = warn
        self._sending: list[threading.Thread] = []
        self._failed: list[str] = []
        """told at the next event, in the thread of the run: the journal has one writer"""

    def __call__(self, event: Event) -> None:
        self._tell_failures()
        text = _message(event)
        if self._url and text:
            thread = threading.Thread(target=self._send, args=(f"{self._project}: {text}",), daemon=True)
            self._sending.append(thread)
            thread.start()

    def flush(self) -> None:
        """Give what is under way a moment to arrive."""
        deadline = time.monotonic() + _FLUSH
        for thread in self._sending:
            thread.join(max(deadline - time.monotonic(), 0.0))
        self._tell_failures()

    def _tell_failures(self) -> None:
        while self._failed:
            self._warn(self._failed.pop(0))

    def _send(self, text: str) -> None:
        try:
            headers = {"Title": "Quintet"}
            httpx.post(self._url, content=text.encode(), headers=headers, timeout=_TIMEOUT).raise_for_status()
        except httpx.HTTPError as error:
            self._failed.append(f"notification not sent to {self._url}: {error or type(error).__name__}")


def _message(event: Event) -> str:
    match event:
        case RunFinished(status=status, round=number):
            return f"{status} after round {number}"
        case RunStopped(reason=reason):
            return f"stopped: {reason}"
        case PermissionAsked(accepted=False, role=role, reason=reason) if reason:
            return f"{in_words(role)} cannot start without you: {reason}"
        case PermissionAsked(question=True, role=role, terminal=terminal):
            return f"{in_words(role)} asks something that only you can answer, in terminal {terminal}"
        case PermissionAsked(accepted=False, role=role, terminal=terminal):
            return f"{in_words(role)} asks for permission in terminal {terminal}"
        case LimitReached(role=role, text=text, until=until):
            return f"{in_words(role)} waits until {until} for the end of a limit: {text}"
        case ReviewsUsedUp(phase=phase, cycles=cycles):
            return f"the {phase} phase goes on without approval after {plural(cycles, 'review')}"
    return ""
