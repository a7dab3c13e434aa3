"""What the scripted model does in a recording, and what is known about it at any moment."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.e2e.exchange import Reply, Request
from tests.e2e.wire import pieces

PATIENCE = 30.0
LOOK = 0.02


class NothingCameError(RuntimeError):
    """The program did not do what the script waits for."""


@dataclass(frozen=True)
class Exchange:
    """One request and its answer."""

    key: str
    step: int
    """How many commands of this turn had been run."""
    reply: Reply
    arrived: float

    @property
    def first_byte(self) -> float:
        return self.arrived + self.reply.delay

    @property
    def last_byte(self) -> float:
        return self.first_byte + self.reply.pace * len(pieces(self.reply.text))


class Script:
    """The brain of the model: a prompt that contains a key gets the replies that are planned for it."""

    def __init__(self) -> None:
        self._plans: dict[str, Sequence[Reply]] = {}
        self._log: list[Exchange] = []
        self._lock = threading.Lock()

    def plan(self, key: str, *replies: Reply) -> None:
        self._plans[key] = replies

    def __call__(self, request: Request) -> Reply:
        key = next((key for key in self._plans if key in request.prompt), None)
        if key is None:
            return Reply.say("Understood.")
        step = min(len(request.results), len(self._plans[key]) - 1)
        exchange = Exchange(key, step, self._plans[key][step], request.at)
        with self._lock:
            self._log.append(exchange)
        return exchange.reply

    def requests(self, key: str) -> list[Exchange]:
        with self._lock:
            return [exchange for exchange in self._log if exchange.key == key]

    def wait_for(self, key: str, *, step: int = 0, count: int = 1) -> Exchange:
        """The nth request for this step of a turn, once it has come."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = [exchange for exchange in self.requests(key) if exchange.step == step]
            if len(found) >= count:
                return found[count - 1]
            time.sleep(LOOK)
        raise NothingCameError(f"no request {count} for step {step} of {key!r}")
