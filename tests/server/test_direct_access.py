"""`quintet ps`, `attach`, `logs` and `stop`: they need no server."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from quintet.cli.commands import attach_command, logs_command, ps_command, stop_command
from quintet.errors import ServerError
from quintet.processes import has_ended
from quintet.server.state_folder import StateFolder
from quintet.server.tmux.connection import _check_release
from tests.eventually import eventually
from tests.server.rig import Rig


@pytest.fixture
def home(own_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A server in the user's own state folder and working directory."""
    monkeypatch.setattr("quintet.server.state_folder.default_root", lambda: own_rig.state_folder.root)
    monkeypatch.chdir(own_rig.wd)
    return own_rig


def run(command: object, *words: str) -> str:
    result = CliRunner().invoke(command, words, catch_exceptions=False)  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    return result.output


def test_ps_logs_and_stop(home: Rig) -> None:
    assert run(ps_command) == "No terminals.\n"
    programmer = home.terminal()
    tester = home.add_terminal(profile="tester")
    home.ask(programmer, "hello")
    home.live.stop()
    listed = [line.split() for line in run(ps_command).splitlines()]
    assert [line[:5] for line in listed] == [
        ["cao-t", "programmer", programmer, "scripted", "completed"],
        ["cao-t", "tester", tester, "scripted", "idle"],
    ]
    assert "done 1" in run(logs_command, "programmer")
    with pytest.raises(ServerError, match='no terminal "analyst"; there are programmer, tester'):
        run(logs_command, "analyst")
    with pytest.raises(ServerError, match="no session other"):
        run(logs_command, "tester", "--session", "other")
    assert run(stop_command) == "Ended cao-t.\n"
    assert home.state_folder.session_names() == []
    with pytest.raises(ServerError, match="no terminals"):
        run(attach_command, "programmer")
    home.live.start()


def test_attach_without_a_terminal_is_one_line(home: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    home.terminal()
    for terminal, kind in ((False, "xterm"), (True, "dumb")):
        monkeypatch.setattr("os.isatty", lambda _, there=terminal: there)
        monkeypatch.setenv("TERM", kind)
        with pytest.raises(ServerError) as refused:
            run(attach_command, "programmer")
        said = "attach needs a terminal to show it in; quintet logs programmer prints what it shows"
        assert str(refused.value) == said


def test_stop_ends_nothing_of_another_directory(home: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = home.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with pytest.raises(ServerError, match=r"no run and no terminals are in .*elsewhere, nor in any other"):
        run(stop_command)
    one, two = home.terminal(session="one"), home.terminal(session="two")
    with pytest.raises(ServerError) as refused:
        run(stop_command)
    assert str(refused.value) == (
        f"no run and no terminals are in {elsewhere}, "
        "there are cao-two, cao-one; name one with --session NAME, or all with --all"
    )
    assert home.http.post("/sessions/one/terminals", params={**home.wish(), "working_directory": str(elsewhere)})
    with pytest.raises(ServerError, match="cao-two"):
        run(stop_command)  # a session that is only in part of this directory is not this directory's
    assert (home.status(one), home.status(two)) == ("idle", "idle")
    assert "done" not in run(logs_command, "programmer"), "looking is free"
    name = "20260101-000000-abcdef-0123"
    made = home.http.post("/sessions", params={**home.wish(), "session_name": name}).json()
    assert made["session_name"] == name, "the session of a run has no prefix"
    assert home.http.get(f"/sessions/{name}").status_code == 200
    assert run(stop_command, "--session", name) == f"Ended {name}.\n"
    assert (home.status(one), home.status(two)) == ("idle", "idle")
    assert sorted(run(stop_command, "--all").splitlines()) == ["Ended cao-one.", "Ended cao-two."]
    assert home.state_folder.session_names() == []
    monkeypatch.chdir(home.wd)
    home.terminal(session="one")
    home.terminal(session="two")
    assert run(stop_command) == "Ended cao-two.\nEnded cao-one.\n", "without a name, all sessions of the directory"
    assert home.state_folder.session_names() == []


def test_a_session_that_does_not_answer(home: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    home.terminal()
    pid = home.tmux_pid()
    home.live.stop()
    monkeypatch.setattr("quintet.server.tmux.connection.REPLY_SECONDS", 0.5)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert " ".join(run(ps_command).split()) == "cao-t - - - unknown tmux does not answer"
        with pytest.raises(ServerError, match="cao-t: tmux does not answer; quintet stop --session cao-t ends it"):
            run(logs_command, "programmer", "--session", "t")
        with pytest.raises(ServerError, match="there are cao-t"):
            run(stop_command)
        assert run(stop_command, "--session", "t") == "Ended cao-t.\n"
        assert has_ended(pid)
    finally:
        if not has_ended(pid):
            os.kill(pid, signal.SIGCONT)
    assert home.state_folder.session_names() == []
    assert not list(home.state_folder.terminals.iterdir())
    home.live.start()


@contextmanager
def attached(*options: str) -> Iterator[int]:
    """Attach to the programmer's terminal in a terminal of 41 columns, as a person does."""
    child, descriptor = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        attach_command.main(["programmer", *options])
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 41, 0, 0))
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        os.waitpid(child, 0)


def test_attach_at_another_size(home: Rig) -> None:
    long = "\n".join(f"line {number} " + "word " * 60 for number in range(80))
    terminal = home.terminal([[{"say": long}, {"reply": "seen"}]], "--no-record")
    home.ask(terminal, "one")
    with attached() as descriptor:
        home.eventually(lambda: home.pane(terminal, "#{window_width}") == "41", "a narrow window")
        assert home.http.get("/sessions/t").json()["session"]["status"] == "active"
        assert home.status(terminal) == "completed"
        assert home.ask(terminal, "two\n" * 5) == "seen"
        shown = bytearray()
        eventually(lambda: b"seen" in _add_output(descriptor, shown), "the reply")
        assert home.get(terminal)["turn"] == 2


def _add_output(descriptor: int, shown: bytearray) -> bytearray:
    """Add what the terminal has shown since."""
    if select.select([descriptor], [], [], 0)[0]:
        shown += os.read(descriptor, 65536)
    return shown


def test_attach_read_only_passes_nothing_on(home: Rig) -> None:
    terminal = home.terminal()
    with attached("--read-only") as descriptor:
        # the server's own connection is a client too
        shown = "#{?client_control_mode,,#{client_readonly}}"
        home.eventually(lambda: "".join(home.tmux("list-clients", "-F", shown).split()) == "1", "a reader")
        os.write(descriptor, b"typed by a person\r")
        assert home.ask(terminal, "a prompt") == "done 1"
        assert "typed by a person" not in home.full(terminal)


def test_the_place_is_short_enough_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 80)
    monkeypatch.setenv("XDG_STATE_HOME", str(deep))
    first = StateFolder()
    assert len(os.fsencode(first.socket("cao-" + "y" * 60))) <= 103
    assert StateFolder().root == first.root
    monkeypatch.setenv("XDG_STATE_HOME", str(deep) + "2")
    assert StateFolder().root != first.root
    for state_folder in (first, StateFolder()):
        assert json.dumps(state_folder.session_names()) == "[]"
        for folder in (state_folder.sockets, state_folder.terminals, state_folder.root):
            folder.rmdir()


@pytest.mark.parametrize(
    ("program", "words"),
    [("echo tmux 3.1c", "tmux 3.2 or later is needed; this is tmux 3.1c"), (None, "not installed")],
)
def test_a_missing_or_old_tmux(rig: Rig, monkeypatch: pytest.MonkeyPatch, program: str | None, words: str) -> None:
    folder = rig.root / "bin"
    folder.mkdir()
    if program:
        (folder / "tmux").write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        (folder / "tmux").chmod(0o755)
    _check_release.cache_clear()
    monkeypatch.setenv("PATH", str(folder))
    answer = rig.http.post("/sessions", params=rig.wish())
    monkeypatch.undo()
    _check_release.cache_clear()
    assert answer.status_code == 500
    assert words in answer.json()["detail"]
    assert rig.http.get("/sessions").json() == []
