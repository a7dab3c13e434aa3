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
from tests.eventually import eventually
from tests.server.rig import Rig

DIALOG = {"start_seconds": 0.3, "dialog": "Trust? (press t)", "turns": [[{"reply": "turn {turn}"}]]}


@pytest.fixture
def rig(own_rig: Rig) -> Rig:
    return own_rig


def test_a_restarted_server_finds_its_terminals(rig: Rig) -> None:
    asked = rig.terminal([[{"reply": "one"}], [{"reply": "two"}]])
    fresh = rig.add_terminal(profile="tester")
    assert rig.send(asked, "first", dispatch_id="d1").status_code == 200
    rig.until(asked, "completed")
    before = rig.get(asked)
    rig.restart()
    assert rig.get(asked) == before
    assert rig.status(fresh) == "idle"
    assert rig.last(asked) == "one"
    rig.send(asked, "first", dispatch_id="d1")
    assert rig.get(asked)["turn"] == 1
    assert rig.ask(asked, "second") == "two"
    rig.live.stop()
    rig.live.start()
    assert rig.http.get("/sessions").json() == [], "an embedded server sees only its own sessions"
    assert rig.http.get(f"/terminals/{asked}").status_code == 404
    assert rig.http.delete("/sessions/t").status_code == 404
    assert rig.http.post("/sessions", params={**rig.wish(), "session_name": "t"}).status_code == 400


def test_what_happens_while_no_server_is_there(rig: Rig) -> None:
    gate, wait = rig.gate()
    working = rig.terminal([[wait, {"reply": "done alone"}]])
    ending = rig.add_terminal()
    rig.send(working, "go")
    assert rig.status(working) == "processing"
    starting = rig.add_terminal({"start_seconds": 1, "turns": [[{"reply": "up"}]]}, defer_init=True)
    pid = rig.pane_pid(ending)
    rig.live.stop()
    gate.touch()
    os.kill(pid, signal.SIGKILL)
    rig.live.start("t")
    rig.until(working, "completed")
    assert rig.last(working) == "done alone"
    assert rig.until(ending, "error")["reason"] == "its program was ended by signal 9"
    assert rig.ask(starting, "hi") == "up", "a start that nobody waited for"


def test_a_first_message_outlives_its_server(rig: Rig) -> None:
    part = {"start_seconds": 1.0, "turns": [[{"reply": "taken {turn}"}]]}
    params = {**rig.wish(part), "defer_init": True, "session_name": "t"}
    body = {"initial_message": "go", "description": "writes the code"}
    terminal = rig.http.post("/sessions", params=params, json=body).json()["id"]
    rig.restart()
    rig.until_last(terminal, "taken 1")
    assert rig.get(terminal)["description"] == "writes the code"


def test_a_paste_without_its_enter_is_brought_to_its_end(rig: Rig) -> None:
    """A server that is killed between the paste and Enter leaves this behind."""
    message, target = "a\nlong\none", rig.root / "prompt.txt"
    terminal = rig.terminal([[{"save_prompt": str(target)}, {"reply": "taken {turn}"}]])
    pane = rig.pane(terminal)
    facts = json.loads(rig.tmux("display-message", "-p", "-t", pane, f"#{{{OPTION}}}"))
    rig.live.stop()
    source = rig.state_folder.folder("cao-t", terminal) / "input"
    source.write_text(message, encoding="utf-8")
    rig.tmux("load-buffer", "-b", "x", str(source))
    rig.tmux(
        "set-option", "-p", "-t", pane, OPTION, json.dumps({**facts, "turn": 1, "dispatches": ["d"], "pasted": True})
    )
    rig.tmux("paste-buffer", "-p", "-r", "-d", "-b", "x", "-t", pane)
    rig.live.start("t")
    assert rig.get(terminal)["dispatch_id"] == "d"
    rig.send(terminal, message, dispatch_id="d")
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "taken 1"
    assert rig.full(terminal).count("taken") == 1
    assert target.read_text(encoding="utf-8") == message


def test_a_dead_socket_is_swept_away(rig: Rig) -> None:
    rig.terminal()
    pid = rig.tmux_pid()
    rig.live.stop()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: has_ended(pid), "the end of tmux")
    assert rig.state_folder.session_names() == ["cao-t"]
    rig.live.start("t")
    assert rig.http.get("/sessions").json() == []
    assert rig.state_folder.session_names() == []


def test_two_servers_on_one_session(rig: Rig) -> None:
    """One acts: it answers start-up dialogs and completes deliveries. The other may look, start and type on request."""
    terminal = rig.terminal(DIALOG, defer_init=True)
    with served(rig.live.root, root=rig.state_folder.root) as (_, http):
        assert http.get(f"/terminals/{terminal}").json()["status"] in ("unknown", "idle")
        rig.until(terminal, "idle")
        assert rig.full(terminal).rstrip().endswith("»"), "the dialog was answered once"
        assert rig.ask(terminal, "one") == "turn 1"
        seen = http.get(f"/terminals/{terminal}").json()
        assert (seen["status"], seen["turn"]) == ("completed", 1)
        assert http.post(f"/terminals/{terminal}/input", json={"message": "two"}).status_code == 200
        rig.until_last(terminal, "turn 2")
        assert rig.get(terminal)["turn"] == 2
        made = http.post("/sessions/t/terminals", params=rig.wish(DIALOG))
        assert (made.status_code, made.json()["status"]) == (201, "idle")
        deferred = http.post("/sessions/t/terminals", params={**rig.wish(DIALOG), "defer_init": True}).json()["id"]
        for other in (made.json()["id"], deferred):
            rig.until(other, "idle")
            assert rig.full(other).rstrip().endswith("»"), "the dialog was answered once"
            assert http.post(f"/terminals/{other}/input", json={"message": "go"}).status_code == 200
            rig.until_last(other, "turn 1")


def test_what_a_dead_server_has_begun_is_taken_over(rig: Rig) -> None:
    """The server that is left had found the sessions while the other lived, and needs no request to take over."""
    part = DIALOG | {"start_seconds": 1.5}
    rig.terminal()
    with served(rig.live.root, root=rig.state_folder.root) as (process, http):
        owned = http.post("/sessions", params={**rig.wish(part), "session_name": "o", "defer_init": True}).json()["id"]
        added = http.post("/sessions/t/terminals", params={**rig.wish(part), "defer_init": True}).json()["id"]
        rig.restart()
        assert [rig.status(one) for one in (owned, added)] == ["unknown", "unknown"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    for session, terminal in (("cao-o", owned), ("cao-t", added)):
        panes = rig.tmux("list-panes", "-a", "-F", "#{pane_id} #{@quintet}", session=session).splitlines()
        pane = next(line.split(" ", 1)[0] for line in panes if terminal in line)
        screen = partial(rig.tmux, "capture-pane", "-p", "-t", pane, session=session)
        assert "Trust?" in rig.eventually(screen, "the prompt", lambda text: "»" in text)
        assert int(rig.tmux("show-options", "-gqv", "@quintet-owner", session=session)) == os.getpid()
        assert rig.ask(terminal, "hi") == "turn 1"


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
            eventually(lambda: http.get(where).json()["status"], "the end", wanted=lambda status: status == "completed")
            assert http.get(f"{where}/output?mode=last").json()["output"] == "survived"
            assert http.delete("/sessions/k").status_code == 200
            assert not StateFolder(root / "quintet").session_names()
