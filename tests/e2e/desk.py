"""One agent at Quintet's own server, for a look at single turns: `quintet serve` in a clean environment."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.e2e.orders import ordered, orders
from tests.e2e.rig import QUINTET, Cast, Rig, rig
from tests.eventually import eventually

READY_SECONDS = 60.0
TURN_SECONDS = 60.0
ACCEPT_SECONDS = 1.0
TOKEN = "made-up-for-tests"
AT_REST = ("idle", "completed")


@dataclass
class Turn:
    """What was seen of a turn."""

    statuses: list[str]
    """each one once, in order"""
    end: dict[str, Any]
    """the terminal when the turn had ended"""
    answer: str
    seconds: float


@dataclass
class Desk:
    rig: Rig
    http: httpx.Client
    provider: str
    terminal: str = ""

    def open(self, permissions: str = "unattended", **more: Any) -> dict[str, Any]:
        """Start an agent and wait until it is ready."""
        params = {
            "provider": self.provider,
            "agent_profile": "programmer",
            "working_directory": str(self.rig.project),
            "permissions": permissions,
        }
        made = self.http.post("/sessions", params=params, json=more, timeout=READY_SECONDS)
        assert made.status_code == 201, made.text
        self.terminal = made.json()["id"]
        return self.look()

    def look(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/terminals/{self.terminal}").raise_for_status().json()
        return found

    def output(self, mode: str = "full") -> str:
        got = self.http.get(f"/terminals/{self.terminal}/output", params={"mode": mode}).raise_for_status()
        return str(got.json()["output"])

    def send(self, message: str) -> None:
        sent = self.http.post(f"/terminals/{self.terminal}/input", json={"message": message}, timeout=TURN_SECONDS)
        assert sent.status_code == 200, sent.text + self.output()

    def press(self, key: str) -> httpx.Response:
        return self.http.post(f"/terminals/{self.terminal}/key", params={"key": key})

    def until(
        self, holds: Callable[[dict[str, Any]], Any], seen: list[str] | None = None, seconds: float = TURN_SECONDS
    ) -> dict[str, Any]:
        """Wait until the terminal is as wanted, and note each status on the way."""
        statuses = [] if seen is None else seen

        def look() -> dict[str, Any]:
            found = self.look()
            if statuses[-1:] != [found["status"]]:
                statuses.append(found["status"])
            return found

        return eventually(look, "the terminal", wanted=holds, deadline=seconds, on_failure=self.rig.dump)

    def accept(self) -> None:
        """Say yes until a question is answered: an agent may not listen in the first moment."""

        def answered() -> bool:
            if self.look()["status"] != "waiting_user_answer":
                return True
            assert self.press("accept").status_code in (200, 409), "409: it was answered after the look"
            time.sleep(ACCEPT_SECONDS)
            return False

        eventually(answered, "the question is answered", deadline=TURN_SECONDS, on_failure=self.rig.dump)

    def turn(self, message: str) -> Turn:
        """One prompt, until the terminal says that its turn is over."""
        begun = time.monotonic()
        self.send(message)
        seen: list[str] = []
        end = self.until(lambda found: found["status"] not in ("processing", "unknown"), seen)
        return Turn(seen, end, self.output("last"), time.monotonic() - begun)

    def interrupt(self) -> dict[str, Any]:
        """Press Escape while a command of the agent's runs; the terminal when the turn is over."""
        self.send(f"Take long.\n{orders({'command': 'tail -f /dev/null'}, {'text': 'Never said.'})}")
        self.until(lambda _: any("tail -f /dev/null" in line for line in self.rig.living().values()))
        assert self.press("Escape").is_success
        return self.until(lambda found: found["status"] in AT_REST)

    def order(self, *steps: Mapping[str, Any], words: str = "Please do as ordered.") -> Turn:
        """One turn in which the model answers as ordered."""
        return self.turn(f"{words}\n{orders(*steps)}")


@contextmanager
def desk(cast: Cast, more: Mapping[str, str] | None = None) -> Iterator[Desk]:
    """Start a server with no agent yet; when the block ends, so does everything that was started in it."""
    with rig(cast, ordered, more) as built, served(built, QUINTET_TOKEN=TOKEN) as url:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=READY_SECONDS) as http:
            yield Desk(built, http, cast.provider)


@contextmanager
def served(built: Rig, *words: str, **settings: str) -> Iterator[str]:
    """Start `quintet serve`; yield its address."""
    process = subprocess.Popen(
        [*QUINTET, "serve", "--port", "0", *words],
        env={**built.env, **settings},
        cwd=built.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    built.started.append(process)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.communicate(timeout=READY_SECONDS)
