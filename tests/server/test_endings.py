"""Agents, panes, sessions and tmux servers that end: noticed, told, and nothing is typed into what is left."""

import os
import signal
import time

import pytest

from quintet.processes import has_ended
from tests.server.rig import Rig, until


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ({"crash": True}, "its program was ended by signal 9"),
        ({"exit": 0}, "its program has exited with code 0"),
        ({"exit": 7}, "its program has exited with code 7"),
    ],
)
def test_an_agent_that_ends_in_its_turn(rig: Rig, action: dict[str, object], reason: str) -> None:
    gate = rig.root / "gate"  # tmux loses what a program says in the very moment of its end
    terminal = rig.terminal([[{"say": "last words"}, {"run": f"while ! test -e {gate}; do sleep 0.01; done"}, action]])
    rig.send(terminal, "go")
    until(lambda: rig.full(terminal), lambda text: "last words" in text)
    gate.touch()
    seen = rig.until(terminal, "error")
    assert seen["reason"] == reason
    assert "last words" in seen["last_screen"]
    assert rig.last(terminal) == ""
    assert "last words" in rig.full(terminal)
    canary = rig.root / "canary"
    for _ in range(3):
        assert rig.send(terminal, f"touch {canary}").status_code == 409
        assert rig.http.post(f"/terminals/{terminal}/key", params={"key": "Enter"}).status_code == 409
    assert not canary.exists()
    assert rig.tmux("list-panes", "-a", "-F", "#{pane_dead}") == "1", "the tmux server lives"


def test_the_other_terminals_go_on(rig: Rig) -> None:
    crashing = rig.terminal([[{"crash": True}]])
    other = rig.http.post("/sessions/t/terminals", params=rig.wish()).json()["id"]
    rig.send(crashing, "go")
    rig.until(crashing, "error")
    assert rig.ask(other, "still there?") == "done 1"


def test_an_end_between_two_looks(rig: Rig) -> None:
    terminal = rig.terminal()
    pid = int(rig.tmux("list-panes", "-a", "-F", "#{pane_pid}"))
    assert rig.status(terminal) == "idle"
    os.kill(pid, signal.SIGTERM)
    assert rig.until(terminal, "error")["reason"] == "its program was ended by signal 15"


def test_a_killed_pane(rig: Rig) -> None:
    first = rig.terminal()
    second = rig.http.post("/sessions/t/terminals", params=rig.wish()).json()["id"]
    rig.ask(first, "something")
    pane = rig.tmux("list-panes", "-a", "-F", "#{pane_id}").split()[0]
    rig.tmux("kill-pane", "-t", pane)
    seen = rig.until(first, "error")
    assert seen["reason"] == "its pane was killed"
    assert "done 1" in seen["last_screen"]
    assert rig.send(first, "x").status_code == 409
    assert rig.status(second) == "idle"
    assert rig.http.delete(f"/terminals/{first}").json() == {"success": True}


@pytest.mark.parametrize("how", ["kill-session", "kill-server", "SIGKILL"])
def test_a_killed_session(rig: Rig, how: str) -> None:
    terminal = rig.terminal()
    rig.ask(terminal, "something")
    if how == "SIGKILL":
        os.kill(int(rig.tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
    else:
        rig.tmux(how)
    begun = time.monotonic()
    seen = rig.until(terminal, "error")
    assert time.monotonic() - begun < 10
    assert seen["reason"] == "its tmux session was killed"
    assert rig.send(terminal, "x").status_code == 409
    assert rig.http.get("/sessions").json() == []
    assert rig.http.get("/sessions/t").status_code == 404
    assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
    again = rig.terminal()
    assert rig.ask(again, "x") == "done 1"


def test_an_end_is_told_without_being_asked(rig: Rig) -> None:
    terminal = rig.terminal()
    with rig.http.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        os.kill(int(rig.tmux("list-panes", "-a", "-F", "#{pane_pid}")), signal.SIGKILL)
        told = next(line for line in lines if '"status": "error"' in line)
    assert terminal in told
    assert "signal 9" in told


def test_a_detached_connection_is_made_again(rig: Rig) -> None:
    terminal = rig.terminal()
    rig.tmux("detach-client", "-s", "cao-t")
    assert until(lambda: rig.send(terminal, "x", dispatch_id="d").status_code, lambda code: code == 200) == 200
    rig.until(terminal, "completed")


def test_deleting_ends_what_ignores_its_hang_up(rig: Rig) -> None:
    terminal = rig.terminal([[{"run": "trap '' HUP TERM; echo $$ > pid; while :; do sleep 0.05; done"}]])
    rig.send(terminal, "go")
    pid = rig.wd / "pid"
    inner = int(until(lambda: pid.read_text() if pid.exists() else "", lambda text: bool(text.strip())))
    pane = int(rig.tmux("list-panes", "-a", "-F", "#{pane_pid}"))
    assert rig.http.delete("/sessions/t").status_code == 200
    assert has_ended(pane)
    until(lambda: has_ended(inner), bool)


def test_a_tmux_server_that_does_not_answer(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = rig.terminal()
    other = rig.terminal(session="other")
    monkeypatch.setattr("quintet.server.tmux.connection.REPLY_SECONDS", 0.5)
    monkeypatch.setattr("quintet.server.terminal.tmux_session.RETRY_SECONDS", 0.5)
    pid = int(rig.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        assert rig.until(stuck, "unknown")["reason"] == "tmux does not answer"
        assert rig.ask(other, "still there?") == "done 1"
        listed = {one["name"]: (one["status"], one["reason"]) for one in rig.http.get("/sessions").json()}
        assert listed == {"cao-t": ("unknown", "tmux does not answer"), "cao-other": ("detached", None)}
        assert rig.send(stuck, "x").status_code == 409
        assert rig.http.post("/sessions/t/terminals", params=rig.wish()).status_code == 409
        assert rig.http.post("/sessions", params={**rig.wish(), "session_name": "t"}).status_code == 400
    finally:
        os.kill(pid, signal.SIGCONT)
    rig.until(stuck, "idle")
    assert rig.ask(stuck, "back again?") == "done 1"


@pytest.mark.parametrize("known", [True, False])
def test_a_tmux_server_that_does_not_answer_is_ended_by_force(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    monkeypatch.setattr("quintet.server.tmux.connection.REPLY_SECONDS", 0.5)
    terminal = rig.terminal()
    pane = int(rig.tmux("list-panes", "-a", "-F", "#{pane_pid}"))
    pid = int(rig.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        if known:
            rig.until(terminal, "unknown")
        else:
            rig.restart()
            (listed,) = rig.http.get("/sessions").json()
            assert (listed["name"], listed["status"]) == ("cao-t", "unknown")
            assert rig.http.get(f"/terminals/{terminal}").status_code == 500, "not 404: it may live"
        assert rig.state_folder.folder("cao-t", terminal).is_dir()
        assert rig.http.delete("/sessions/t").status_code == 200
        assert has_ended(pid)
        assert has_ended(pane)
    finally:
        if not has_ended(pid):
            os.kill(pid, signal.SIGCONT)
    assert not list(rig.state_folder.terminals.iterdir())
    assert rig.state_folder.session_names() == []
    assert rig.http.get("/sessions").json() == []
