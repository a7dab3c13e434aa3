"""Agents, panes, sessions and tmux servers that end: noticed, told, and nothing is typed into what is left."""

import os
import signal

import pytest

from quintet.processes import has_ended
from tests.server.rig import Rig


@pytest.mark.parametrize(
    ("action", "reason"),
    [({"crash": True}, "its program was ended by signal 9"), ({"exit": 7}, "its program has exited with code 7")],
)
def test_an_agent_that_ends_in_its_turn(rig: Rig, action: dict[str, object], reason: str) -> None:
    gate, wait = rig.gate()  # tmux loses what a program says in the very moment of its end
    terminal = rig.terminal([[{"say": "last words"}, wait, action]])
    other = rig.add_terminal()
    rig.send(terminal, "go")
    rig.until_shown(terminal, "last words")
    gate.touch()
    seen = rig.until(terminal, "error")
    assert seen["reason"] == reason
    assert "last words" in seen["last_screen"]
    assert rig.last(terminal) == ""
    assert "last words" in rig.full(terminal)
    canary = rig.root / "canary"
    for _ in range(3):
        assert rig.send(terminal, f"touch {canary}").status_code == 409
        assert rig.press(terminal, "Enter").status_code == 409
    assert not canary.exists()
    assert rig.pane(terminal, "#{pane_dead}") == "1", "the tmux server lives"
    assert rig.ask(other, "still there?") == "done 1", "the other terminals live"
    for one in (terminal, other):
        assert rig.http.post(f"/terminals/{one}/exit").status_code == 200
    assert not list(rig.state_folder.sockets.iterdir()), "nothing is left after a crash either"
    assert rig.get(terminal)["reason"] == reason


def test_a_killed_pane(rig: Rig) -> None:
    first, second = rig.terminal(), rig.add_terminal()
    rig.ask(first, "something")
    rig.tmux("kill-pane", "-t", rig.pane(first))
    seen = rig.until(first, "error")
    assert seen["reason"] == "its pane was killed"
    assert "done 1" in seen["last_screen"]
    assert rig.send(first, "x").status_code == 409
    assert rig.status(second) == "idle"
    assert rig.http.delete(f"/terminals/{first}").json() == {"success": True}


@pytest.mark.parametrize("how", ["kill-session", "SIGKILL"])
def test_a_killed_session(rig: Rig, how: str) -> None:
    terminal = rig.terminal()
    rig.ask(terminal, "something")
    if how == "SIGKILL":
        os.kill(rig.tmux_pid(), signal.SIGKILL)
    else:
        rig.tmux(how)
    seen = rig.until(terminal, "error")
    assert seen["reason"] == "its tmux session was killed"
    assert rig.send(terminal, "x").status_code == 409
    assert rig.http.get("/sessions").json() == []
    assert rig.http.get("/sessions/t").status_code == 404
    assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
    assert rig.ask(rig.terminal(), "x") == "done 1"


def test_an_end_is_told_without_being_asked(own_rig: Rig) -> None:
    rig = own_rig  # a snapshot also lists the sessions of earlier tests
    terminal = rig.terminal()
    with rig.http.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        os.kill(rig.pane_pid(terminal), signal.SIGKILL)
        told = next(line for line in lines if '"status": "error"' in line)
    assert terminal in told
    assert "signal 9" in told


def test_a_detached_connection_is_made_again(rig: Rig) -> None:
    terminal = rig.terminal()
    rig.tmux("detach-client", "-s", "cao-t")
    rig.eventually(lambda: rig.send(terminal, "x", dispatch_id="d").status_code, wanted=lambda code: code == 200)
    rig.until(terminal, "completed")


def test_deleting_ends_what_ignores_its_hang_up(rig: Rig) -> None:
    terminal = rig.terminal([[{"run": "trap '' HUP TERM; echo $$ > pid; while :; do sleep 0.05; done"}]])
    rig.send(terminal, "go")
    pid = rig.wd / "pid"
    inner = int(rig.eventually(lambda: pid.exists() and pid.read_text().strip()))
    pane = rig.pane_pid(terminal)
    assert rig.http.delete("/sessions/t").status_code == 200
    assert has_ended(pane)
    rig.eventually(lambda: has_ended(inner))


def test_a_tmux_server_that_does_not_answer(own_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = own_rig
    stuck = rig.terminal()
    other = rig.terminal(session="other")
    monkeypatch.setattr("quintet.server.tmux.connection.REPLY_SECONDS", 0.5)
    monkeypatch.setattr("quintet.server.terminal.tmux_session.RETRY_SECONDS", 0.5)
    pid = rig.tmux_pid()
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
    own_rig: Rig, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    rig = own_rig
    monkeypatch.setattr("quintet.server.tmux.connection.REPLY_SECONDS", 0.5)
    terminal = rig.terminal()
    pane, pid = rig.pane_pid(terminal), rig.tmux_pid()
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
