"""A real server over real tmux. Tests share one server per worker; each test has its own folders and sessions."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx

from quintet.server.http.embedded import EmbeddedServer
from quintet.server.state_folder import StateFolder
from tests.eventually import eventually, show_processes

T = TypeVar("T")


class LiveServer:
    """A terminal server on a private state folder, and a client of that server."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="qt", dir="/tmp"))  # short, because the path of a socket must be
        self.state_folder = StateFolder(self.root / "q")
        self.start()

    def start(self, *sessions: str) -> None:
        """Start a server that knows these sessions."""
        self.server = EmbeddedServer(sessions, state_folder=self.state_folder).start()
        headers = {"Authorization": f"Bearer {self.server.token}"}
        self.http = httpx.Client(base_url=self.server.url, headers=headers, timeout=60, trust_env=False, verify=False)  # noqa: S501

    def stop(self) -> None:
        self.http.close()
        self.server.stop()

    def end_sessions(self) -> None:
        """End every session through the server, and assert that nothing is left of them."""
        for name in self.state_folder.session_names():
            answer = self.http.delete(f"/sessions/{name}")
            assert answer.status_code in (200, 404), answer.text
        assert self.state_folder.session_names() == []
        assert self.http.get("/sessions").json() == []
        for folder in self.state_folder.terminals.iterdir():
            shutil.rmtree(folder)  # a session that was killed keeps its folders, for the terminals that continue it

    def close(self) -> None:
        """End every tmux server of the state folder, then the server."""
        self.stop()
        for name in self.state_folder.session_names():
            path = str(self.state_folder.socket(name))
            subprocess.run(["tmux", "-S", path, "kill-server"], capture_output=True, check=False, timeout=10)
        shutil.rmtree(self.root, ignore_errors=True)


class Rig:
    """The folders of one test, and short ways to use the server."""

    def __init__(self, live: LiveServer) -> None:
        self.live = live
        self.root = Path(tempfile.mkdtemp(prefix="qt", dir="/tmp"))
        self.wd = self.root / "wd"
        self.wd.mkdir()

    @property
    def http(self) -> httpx.Client:
        return self.live.http

    @property
    def server(self) -> EmbeddedServer:
        return self.live.server

    @property
    def state_folder(self) -> StateFolder:
        return self.live.state_folder

    def restart(self) -> None:
        """Stop the server and start another one on the same folder."""
        self.live.stop()
        self.live.start(*self.state_folder.session_names())

    def scenario(self, part: Any, role: str = "programmer") -> str:
        """Write a scenario file."""
        path = self.root / f"scenario-{len(list(self.root.iterdir()))}.json"
        path.write_text(json.dumps({"roles": {role: part}}), encoding="utf-8")
        return str(path)

    def wish(self, part: Any = None, *args: str, profile: str = "programmer") -> dict[str, Any]:
        """Return the parameters that create a terminal."""
        role = "analyst" if profile == "system_analyst" else profile
        words = ["--scenario", self.scenario(part if part is not None else [[{"reply": "done {turn}"}]], role), *args]
        return {
            "provider": "scripted",
            "agent_profile": profile,
            "working_directory": str(self.wd),
            "args": words,
        }

    def terminal(self, part: Any = None, *args: str, session: str = "t", **params: Any) -> str:
        """Create a session with one terminal and return the terminal's id."""
        answer = self.http.post("/sessions", params={**self.wish(part, *args), "session_name": session, **params})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def add_terminal(self, part: Any = None, *args: str, profile: str = "programmer", **params: Any) -> str:
        """Create another terminal in the session t and return its id."""
        wish = {**self.wish(part, *args, profile=profile), **params}
        answer = self.http.post("/sessions/t/terminals", params=wish)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def gate(self, name: str = "gate") -> tuple[Path, dict[str, str]]:
        """Return a file, and the action of an agent that works until the file exists."""
        path = self.root / name
        return path, {"run": f"while ! test -e {path}; do sleep 0.01; done"}

    def get(self, terminal: str) -> dict[str, Any]:
        answer = self.http.get(f"/terminals/{terminal}")
        assert answer.status_code == 200, answer.text
        value: dict[str, Any] = answer.json()
        return value

    def status(self, terminal: str) -> str:
        return str(self.get(terminal)["status"])

    def eventually(self, look: Callable[[], T], what: str = "the condition", wanted: Callable[[T], object] = bool) -> T:
        """Wait, and show the screens and processes of the server if the wait is in vain."""
        return eventually(look, what, wanted=wanted, on_failure=self.show)

    def until(self, terminal: str, *statuses: str) -> dict[str, Any]:
        """Wait for a status."""
        return self.eventually(lambda: self.get(terminal), f"{statuses}", lambda seen: seen["status"] in statuses)

    def until_shown(self, terminal: str, text: str) -> str:
        """Wait for a text on the screen or above it."""
        return self.eventually(lambda: self.full(terminal), text, lambda shown: text in shown)

    def until_pasted(self) -> None:
        """Wait until the server has typed a prompt into a terminal of the session t that the agent has not taken."""
        self.eventually(lambda: '"pasted":true' in self.tmux("list-panes", "-a", "-F", "#{@quintet}"), "a paste")

    def until_last(self, terminal: str, text: str) -> None:
        """Wait until this is the last reply."""
        self.eventually(lambda: self.last(terminal), text, lambda reply: reply == text)

    def show(self) -> str:
        """Return the screens of all terminals and the processes of the server, for a test that failed."""
        parts = []
        for name in self.state_folder.session_names():
            tmux = ["tmux", "-S", str(self.state_folder.socket(name))]
            listed = subprocess.run(
                [*tmux, "list-panes", "-a", "-F", "#{pane_id}"], capture_output=True, text=True, check=False, timeout=10
            )
            for pane in listed.stdout.split():
                screen = subprocess.run(
                    [*tmux, "capture-pane", "-p", "-t", pane], capture_output=True, text=True, check=False, timeout=10
                )
                parts.append(f"--- {name} {pane}\n{screen.stdout.rstrip()}")
        return "\n".join([*parts, show_processes([str(self.live.root), str(self.root)])])

    def send(self, terminal: str, message: str, **more: Any) -> httpx.Response:
        return self.http.post(f"/terminals/{terminal}/input", json={"message": message, **more})

    def ask(self, terminal: str, message: str) -> str:
        """Run one whole turn and return the reply."""
        answer = self.send(terminal, message)
        assert answer.status_code == 200, answer.text
        self.until(terminal, "completed")
        return self.last(terminal)

    def last(self, terminal: str) -> str:
        return str(self.http.get(f"/terminals/{terminal}/output", params={"mode": "last"}).json()["output"])

    def full(self, terminal: str) -> str:
        return str(self.http.get(f"/terminals/{terminal}/output").json()["output"])

    def press(self, terminal: str, key: str) -> httpx.Response:
        return self.http.post(f"/terminals/{terminal}/key", params={"key": key})

    def tmux(self, *words: str, session: str = "cao-t") -> str:
        """Talk to a session's tmux server behind the server's back."""
        command = ["tmux", "-S", str(self.state_folder.socket(session)), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    def tmux_pid(self) -> int:
        """Return the process id of the tmux server of the session t."""
        return int(self.tmux("display-message", "-p", "#{pid}"))

    def pane(self, terminal: str, what: str = "#{pane_id}") -> str:
        """Return the pane of a terminal in the session t, or something else that tmux knows about the pane."""
        listed = self.tmux("list-panes", "-a", "-F", f"{what} #{{@quintet}}").splitlines()
        return next(line.split(" ", 1)[0] for line in listed if f'"id":"{terminal}"' in line)

    def pane_pid(self, terminal: str) -> int:
        return int(self.pane(terminal, "#{pane_pid}"))
