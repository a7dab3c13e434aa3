"""Agents outside of the sandbox that approve their own work, and people who approve from wherever they are."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from quintet.server.state_folder import StateFolder
from tests.eventually import eventually

CALL = "from quintet.setup.callers import refuse_agents; refuse_agents(); print('accepted')"


@dataclass
class Terminals:
    """A tmux server at the place of an agent's session, and what is started in its pane."""

    root: Path
    out: Path

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "XDG_STATE_HOME": str(self.root)}

    @property
    def command(self) -> str:
        """The command of a person, with nothing in its environment that names a terminal."""
        words = [f"{name}={value}" for name, value in self.env.items()]
        return shlex.join(["env", "-i", *words, sys.executable, "-c", CALL])

    def in_pane(self, line: str) -> str:
        """Let an agent run a shell line; what the command has printed."""
        done = self.out.with_suffix(".done")
        script = self.out.with_suffix(".sh")
        script.write_text(f"{line}\ntouch {done}\nsleep 100\n")
        socket = StateFolder().socket("cao-t")
        words = ["tmux", "-S", str(socket), "-f", "/dev/null", "new-session", "-d", f"sh {script}"]
        subprocess.run(words, check=True, env=self.env)
        try:
            eventually(lambda: done.exists() and self.out.exists() and self.out.read_text(), "it has said something")
            return self.out.read_text()
        finally:
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False, env=self.env)


@pytest.fixture
def terminals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminals:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Terminals(tmp_path, tmp_path / "said")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("{command} > {out} 2>&1", id="no environment"),
        pytest.param("setsid {command} > {out} 2>&1 < /dev/null", id="a session of its own"),
        pytest.param(
            "script -qec {quoted} /dev/null > {out} 2>&1", id="a terminal of its own", marks=pytest.mark.attacks
        ),
        pytest.param("(setsid {command} > {out} 2>&1 < /dev/null &)", id="cut loose"),
        pytest.param("({command} > {out} 2>&1 < /dev/null &) ; true", id="left behind", marks=pytest.mark.attacks),
        pytest.param(
            "setsid -f sh -c {quoted_out} < /dev/null > /dev/null 2>&1", id="cut loose twice", marks=pytest.mark.attacks
        ),
    ],
)
def test_an_agent_cannot_approve_however_it_calls_the_command(terminals: Terminals, line: str) -> None:
    """Finding 18: `env -i quintet approve` was enough."""
    command, out = terminals.command, terminals.out
    said = terminals.in_pane(
        line.format(
            command=command, out=out, quoted=shlex.quote(command), quoted_out=shlex.quote(f"{command} > {out} 2>&1")
        )
    )
    assert "accepted" not in said
    assert "this is an agent's terminal" in said or "run it in a terminal of your own" in said


@pytest.mark.parametrize("start", [["setsid"], [], ["sh", "-c", '"$@"; true', "sh"]], ids=["ci", "script", "shell"])
def test_a_person_can_approve_beside_a_run(terminals: Terminals, start: list[str]) -> None:
    """The honest neighbours: a script, a job without a terminal, a shell; all older than the agents' terminals."""
    socket = StateFolder().socket("cao-t")
    words = ["tmux", "-S", str(socket), "-f", "/dev/null", "new-session", "-d", "sleep 100"]
    subprocess.run(words, check=True, env=terminals.env)
    try:
        done = subprocess.run(
            [*start, sys.executable, "-c", CALL],
            env=terminals.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "accepted\n", done.stderr
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False, env=terminals.env)


def test_a_person_can_approve_in_a_tmux_of_their_own(terminals: Terminals) -> None:
    """The honest neighbour: a tmux server that is none of Quintet's, started after the agents' terminals."""
    socket = StateFolder().socket("cao-t")
    own = terminals.root / "own"
    quintet = ["tmux", "-S", str(socket), "-f", "/dev/null", "new-session", "-d", "sleep 100"]
    person = [
        "tmux",
        "-S",
        str(own),
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        f"{terminals.command} > {terminals.out} 2>&1",
    ]
    try:
        for words in (quintet, person):
            subprocess.run(words, check=True, env=terminals.env)
        said = eventually(lambda: terminals.out.exists() and terminals.out.read_text(), "it has said something")
        assert said == "accepted\n"
    finally:
        for path in (socket, own):
            subprocess.run(
                ["tmux", "-S", str(path), "kill-server"], check=False, capture_output=True, env=terminals.env
            )
