"""Terminals in sandboxes of the real bubblewrap, whose agents run any shell command."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.guard.projects import git
from tests.sandbox.need import need_bubblewrap
from tests.server.rig import LiveServer, Rig


class Boxed:
    """A server, a home with secrets in it, and a project, whose terminals are in sandboxes."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.home, self.tmp = rig.root / "home", rig.root / "role"
        for folder in (self.home / ".ssh", self.home / ".codex", self.tmp / "agent-responses"):
            folder.mkdir(parents=True)
        (self.home / ".ssh" / "id_ed25519").write_text("the key")
        (self.home / ".netrc").write_text("the password")
        (self.home / ".codex" / "auth.json").write_text("the login")
        (self.home / "notes.txt").write_text("the notes")
        git(rig.wd, "init", "--quiet")

    def terminal(self, turns: Sequence[Any], session: str = "t", **sandbox: Any) -> str:
        """A terminal whose agent follows these turns."""
        part = [
            turn if isinstance(turn, list) else [{"run": turn}, {"reply": "{exit_code}: {output}"}] for turn in turns
        ]
        params = {**self.rig.wish(part), "session_name": session}
        shown = [params["args"][1], *sandbox.pop("show", ())]
        body = {"env_vars": {"HOME": str(self.home)}, "sandbox": {"tmp": str(self.tmp), "show": shown, **sandbox}}
        answer = self.rig.http.post("/sessions", params=params, json=body)
        assert answer.status_code == 201, answer.text
        terminal = str(answer.json()["id"])
        self.rig.until(terminal, "idle", "error")
        return terminal

    def run(self, *commands: str, **sandbox: Any) -> list[str]:
        """What came of shell commands that an agent was told to run, each as `EXIT CODE: OUTPUT`."""
        terminal = self.terminal(commands, **sandbox)
        return [self.rig.ask(terminal, "go") for _ in commands]

    def fails(self, *commands: str, **sandbox: Any) -> dict[str, str]:
        """Of some commands those that have succeeded, with what they said."""
        return {
            command: said
            for command, said in zip(commands, self.run(*commands, **sandbox), strict=True)
            if said.startswith("0:")
        }

    def folder(self, terminal: str) -> Path:
        """The terminal's own folder, outside."""
        folder = self.rig.state_folder.find_folder(terminal)
        assert folder is not None
        return folder


@contextmanager
def boxed_terminals() -> Iterator[Boxed]:
    """A server of its own, whose terminals are in sandboxes."""
    need_bubblewrap()
    live = LiveServer()
    rig = Rig(live)
    try:
        yield Boxed(rig)
    finally:
        live.close()
        shutil.rmtree(rig.root, ignore_errors=True)
