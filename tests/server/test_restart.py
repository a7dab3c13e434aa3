"""A server that ends in the middle of something, and the next one."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from quintet.processes import has_ended
from quintet.server.state_folder import StateFolder
from quintet.server.terminal.facts import OPTION
from tests.server.rig import Rig, until


def test_a_restarted_server_finds_its_terminals(rig: Rig) -> None:
    asked = rig.terminal([[{"reply": "one"}], [{"reply": "two"}]])
    fresh = rig.http.post("/sessions/t/terminals", params=rig.wish(profile="tester")).json()
    assert rig.send(asked, "first", dispatch_id="d1").status_code == 200
    rig.until(asked, "completed")
    before = rig.get(asked)
    rig.restart()
    assert rig.get(asked) == before
    assert rig.status(fresh["id"]) == "idle"
    assert rig.last(asked) == "one"
    rig.send(asked, "first", dispatch_id="d1")
    assert rig.get(asked)["turn"] == 1
    assert rig.ask(asked, "second") == "two"


def test_a_turn_that_ends_while_no_server_is_there(rig: Rig) -> None:
    gate = rig.root / "gate"
    terminal = rig.terminal([[{"run": f"while ! test -e {gate}; do sleep 0.01; done"}, {"reply": "done alone"}]])
    rig.send(terminal, "go")
    assert rig.status(terminal) == "processing"
    rig.stop()
    gate.touch()
    rig.start("t")
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "done alone"


def test_an_agent_that_ends_while_no_server_is_there(rig: Rig) -> None:
    terminal = rig.terminal()
    pid = int(rig.tmux("list-panes", "-a", "-F", "#{pane_pid}"))
    rig.stop()
    os.kill(pid, signal.SIGKILL)
    rig.start("t")
    assert rig.until(terminal, "error")["reason"] == "its program was ended by signal 9"


def test_a_start_that_nobody_waited_for(rig: Rig) -> None:
    terminal = rig.terminal({"start_seconds": 1, "turns": [[{"reply": "up"}]]}, defer_init=True)
    rig.restart()
    assert rig.ask(terminal, "hi") == "up"


@pytest.mark.parametrize("message", ["a short one", "a\nlong\none"])
def test_a_paste_without_its_enter_is_brought_to_its_end(rig: Rig, message: str) -> None:
    """As a server leaves it that was killed between the paste and Enter."""
    target = rig.root / "prompt.txt"
    terminal = rig.terminal([[{"save_prompt": str(target)}, {"reply": "taken {turn}"}]])
    pane = rig.tmux("list-panes", "-a", "-F", "#{pane_id}")
    facts = json.loads(rig.tmux("display-message", "-p", "-t", pane, f"#{{{OPTION}}}"))
    rig.stop()
    source = rig.state_folder.folder("cao-t", terminal) / "input"
    source.write_text(message, encoding="utf-8")
    rig.tmux("load-buffer", "-b", "x", str(source))
    rig.tmux(
        "set-option", "-p", "-t", pane, OPTION, json.dumps({**facts, "turn": 1, "dispatches": ["d"], "pasted": True})
    )
    rig.tmux("paste-buffer", "-p", "-r", "-d", "-b", "x", "-t", pane)
    rig.start("t")
    assert rig.get(terminal)["dispatch_id"] == "d"
    rig.send(terminal, message, dispatch_id="d")
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "taken 1"
    assert rig.full(terminal).count("taken") == 1
    assert target.read_text(encoding="utf-8") == message


def test_an_embedded_server_sees_only_its_own(rig: Rig) -> None:
    terminal = rig.terminal()
    rig.stop()
    rig.start()
    assert rig.http.get("/sessions").json() == []
    assert rig.http.get(f"/terminals/{terminal}").status_code == 404
    assert rig.http.delete("/sessions/t").status_code == 404
    assert rig.http.post("/sessions", params={**rig.wish(), "session_name": "t"}).status_code == 400


def test_a_dead_socket_is_swept_away(rig: Rig) -> None:
    rig.terminal()
    pid = int(rig.tmux("display-message", "-p", "#{pid}"))
    rig.stop()
    os.kill(pid, signal.SIGKILL)
    until(lambda: has_ended(pid), bool)
    assert rig.state_folder.session_names() == ["cao-t"]
    rig.start("t")
    assert rig.http.get("/sessions").json() == []
    assert rig.state_folder.session_names() == []


def test_two_servers_on_one_session(rig: Rig) -> None:
    """One acts: it answers start-up dialogs and completes deliveries. The other may look, and type on request."""
    part = {"start_seconds": 0.5, "dialog": "Trust? (press t)", "turns": [[{"reply": "turn {turn}"}]]}
    terminal = rig.terminal(part, defer_init=True)
    with served(rig.state_folder.root.parent, root=rig.state_folder.root) as (_, http):
        assert http.get(f"/terminals/{terminal}").json()["status"] in ("unknown", "idle")
        rig.until(terminal, "idle")
        assert rig.full(terminal).rstrip().endswith("»"), "the dialog was answered once"
        assert rig.ask(terminal, "one") == "turn 1"
        seen = http.get(f"/terminals/{terminal}").json()
        assert (seen["status"], seen["turn"]) == ("completed", 1)
        assert http.post(f"/terminals/{terminal}/input", json={"message": "two"}).status_code == 200
        until(lambda: rig.last(terminal), lambda text: text == "turn 2")
        assert rig.get(terminal)["turn"] == 2


def test_a_server_that_is_not_the_owner_starts_terminals_too(rig: Rig) -> None:
    rig.terminal()
    part = {"start_seconds": 0.3, "dialog": "Trust? (press t)", "turns": [[{"reply": "turn {turn}"}]]}
    with served(rig.state_folder.root.parent, root=rig.state_folder.root) as (_, http):
        made = http.post("/sessions/t/terminals", params=rig.wish(part))
        assert (made.status_code, made.json()["status"]) == (201, "idle")
        deferred = http.post("/sessions/t/terminals", params={**rig.wish(part), "defer_init": True}).json()["id"]
        for terminal in (made.json()["id"], deferred):
            rig.until(terminal, "idle")
            assert rig.full(terminal).rstrip().endswith("»"), "the dialog was answered once"
            assert http.post(f"/terminals/{terminal}/input", json={"message": "go"}).status_code == 200
            until(partial(rig.last, terminal), lambda text: text == "turn 1")


@pytest.mark.parametrize("owner", [True, False])
def test_what_a_dead_server_has_begun_is_taken_over(rig: Rig, owner: bool) -> None:
    """The one that is left had found the session while the other lived, and need not be asked."""
    part = {"start_seconds": 1.5, "dialog": "Trust? (press t)", "turns": [[{"reply": "in"}]]}
    with served(rig.state_folder.root.parent, root=rig.state_folder.root) as (process, http):
        if owner:
            terminal = http.post("/sessions", params={**rig.wish(part), "session_name": "t", "defer_init": True}).json()
        else:
            rig.terminal()
            terminal = http.post("/sessions/t/terminals", params={**rig.wish(part), "defer_init": True}).json()
        rig.stop()
        rig.start("t")
        assert rig.status(terminal["id"]) == "unknown"
        process.send_signal(signal.SIGKILL)
        process.wait()
    seen = until(lambda: rig.tmux("capture-pane", "-p", "-t", rig.pane(terminal["id"])), lambda text: "»" in text)
    assert "Trust?" in seen
    assert int(rig.tmux("show-options", "-gqv", "@quintet-owner")) == os.getpid()
    assert rig.ask(terminal["id"], "hi") == "in"


@contextmanager
def served(state: Path, root: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """`quintet serve` as a process of its own."""
    told = "lambda served: print(served.url, flush=True)"
    code = f"from quintet.server.http.serve import serve; serve('127.0.0.1', 0, {told}, no_token=True)"
    if root is not None:
        patch = f"state_folder.default_root = lambda: pathlib.Path({str(root)!r})"
        code = f"import pathlib; from quintet.server import state_folder; {patch}; {code}"
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    assert process.stdout is not None
    try:
        with httpx.Client(base_url=process.stdout.readline().strip(), timeout=60, trust_env=False) as http:
            yield process, http
    finally:
        process.kill()
        process.wait()
        logged = process.stdout.read()
        process.stdout.close()
    assert logged == "", "nothing is logged, least of all a prompt"


def test_a_server_killed_in_the_middle_of_a_turn() -> None:
    with tempfile.TemporaryDirectory(prefix="qs", dir="/tmp") as name:
        root = Path(name)
        gate = root / "gate"
        turn = [{"run": f"while ! test -e {gate}; do sleep 0.01; done"}, {"reply": "survived"}]
        scenario = root / "s.json"
        scenario.write_text(json.dumps({"roles": {"tester": [turn]}}), encoding="utf-8")
        wish = {
            "provider": "scripted",
            "agent_profile": "tester",
            "working_directory": name,
            "args": ["--scenario", str(scenario)],
        }
        with served(root) as (process, http):
            made = http.post("/sessions", params={**wish, "session_name": "k"}).json()
            where = f"/terminals/{made['id']}"
            assert http.post(f"{where}/input", json={"message": "go", "dispatch_id": "d"}).status_code == 200
            assert http.get(where).json()["status"] == "processing"
            process.send_signal(signal.SIGKILL)
            process.wait()
        with served(root) as (_, http):
            assert http.get(where).json()["status"] == "processing"
            assert http.get(where).json()["dispatch_id"] == "d"
            gate.touch()
            until(lambda: http.get(where).json()["status"], lambda status: status == "completed")
            assert http.get(f"{where}/output?mode=last").json()["output"] == "survived"
            assert http.delete("/sessions/k").status_code == 200
            assert not StateFolder(root / "quintet").session_names()
