"""A real server over real tmux, in a directory of its own; what a test starts, its rig ends."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx

from quintet.server.http.embedded import EmbeddedServer
from quintet.server.state_folder import StateFolder

T = TypeVar("T")
DEADLINE = 30.0


def until(look: Callable[[], T], wanted: Callable[[T], bool], seconds: float = DEADLINE) -> T:
    """Look until it is as wanted."""
    end = time.monotonic() + seconds
    while True:
        seen = look()
        if wanted(seen):
            return seen
        assert time.monotonic() < end, f"not within {seconds} s; last seen: {seen!r}"
        time.sleep(0.01)


class Rig:
    """One private directory, one server at a time, and a client of it."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="qt", dir="/tmp"))
        self.wd = self.root / "wd"
        self.wd.mkdir()
        self.state_folder = StateFolder(self.root / "q")
        self.start()

    def start(self, *sessions: str) -> None:
        """Start a server that knows of these sessions."""
        self.server = EmbeddedServer(sessions, state_folder=self.state_folder).start()
        headers = {"Authorization": f"Bearer {self.server.token}"}
        self.http = httpx.Client(base_url=self.server.url, headers=headers, timeout=60, trust_env=False, verify=False)  # noqa: S501

    def stop(self) -> None:
        self.http.close()
        self.server.stop()

    def restart(self) -> None:
        """Another server on the same directory."""
        self.stop()
        self.start(*self.state_folder.session_names())

    def scenario(self, part: Any, role: str = "programmer") -> str:
        """Write a scenario file."""
        path = self.root / f"scenario-{len(list(self.root.iterdir()))}.json"
        path.write_text(json.dumps({"roles": {role: part}}), encoding="utf-8")
        return str(path)

    def wish(self, part: Any = None, *args: str, profile: str = "programmer") -> dict[str, Any]:
        """The parameters of a creation."""
        role = "analyst" if profile == "system_analyst" else profile
        words = ["--scenario", self.scenario(part if part is not None else [[{"reply": "done {turn}"}]], role), *args]
        return {
            "provider": "scripted",
            "agent_profile": profile,
            "working_directory": str(self.wd),
            "args": words,
        }

    def terminal(self, part: Any = None, *args: str, session: str = "t", **params: Any) -> str:
        """A new session with one terminal; its id."""
        answer = self.http.post("/sessions", params={**self.wish(part, *args), "session_name": session, **params})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def get(self, terminal: str) -> dict[str, Any]:
        answer = self.http.get(f"/terminals/{terminal}")
        assert answer.status_code == 200, answer.text
        value: dict[str, Any] = answer.json()
        return value

    def status(self, terminal: str) -> str:
        return str(self.get(terminal)["status"])

    def until(self, terminal: str, *statuses: str) -> dict[str, Any]:
        """Wait for a status."""
        return until(lambda: self.get(terminal), lambda seen: seen["status"] in statuses)

    def send(self, terminal: str, message: str, **more: Any) -> httpx.Response:
        return self.http.post(f"/terminals/{terminal}/input", json={"message": message, **more})

    def ask(self, terminal: str, message: str) -> str:
        """One whole turn; its answer."""
        answer = self.send(terminal, message)
        assert answer.status_code == 200, answer.text
        self.until(terminal, "completed")
        return self.last(terminal)

    def last(self, terminal: str) -> str:
        return str(self.http.get(f"/terminals/{terminal}/output", params={"mode": "last"}).json()["output"])

    def full(self, terminal: str) -> str:
        return str(self.http.get(f"/terminals/{terminal}/output").json()["output"])

    def tmux(self, *words: str, session: str = "cao-t") -> str:
        """Talk to a session's tmux server behind the server's back."""
        command = ["tmux", "-S", str(self.state_folder.socket(session)), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    def pane(self, terminal: str) -> str:
        """The tmux pane of a terminal in the session t."""
        listed = self.tmux("list-panes", "-a", "-F", "#{pane_id} #{@quintet}").splitlines()
        return next(line.split(" ", 1)[0] for line in listed if terminal in line)

    def end(self) -> None:
        """End every tmux server of this directory, then the server."""
        self.stop()
        for name in self.state_folder.session_names():
            path = str(self.state_folder.socket(name))
            subprocess.run(["tmux", "-S", path, "kill-server"], capture_output=True, check=False, timeout=10)
        shutil.rmtree(self.root, ignore_errors=True)
