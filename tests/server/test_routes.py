"""Paths, parameters, status codes and JSON are those of CAO 2.5.4."""

from datetime import datetime

import pytest

from quintet.server.terminal.agent_terminal import LONGEST_REPLY
from quintet.server.tmux.errors import TmuxError
from tests.server.rig import Rig


def test_sessions_are_created_listed_and_described(rig: Rig) -> None:
    answer = rig.http.get("/health")
    assert (answer.status_code, answer.json()["status"], answer.json()["service"]) == (200, "ok", "quintet")
    body = {"env_vars": None, "description": "writes the code"}
    params = {**rig.wish(), "session_name": "t", "caller_id": "0badcafe", "allowed_tools": "fs_read"}
    answer = rig.http.post("/sessions", params=params, json=body)
    assert answer.status_code == 201
    made = answer.json()
    assert made["session_name"] == "cao-t"
    assert len(made["id"]) == 8
    assert (made["provider"], made["agent_profile"], made["status"]) == ("scripted", "programmer", "idle")
    assert datetime.fromisoformat(made["last_active"]).tzinfo is not None
    assert rig.get(made["id"])["name"] == made["name"]
    wanted = {
        "id": "cao-t",
        "name": "cao-t",
        "status": "detached",
        "working_directory": str(rig.wd),
        "agent_profile": "programmer",
        "reason": None,
    }
    assert rig.http.get("/sessions").json() == [wanted]
    detail = rig.http.get("/sessions/cao-t").json()
    assert detail["session"] == wanted
    assert [one["id"] for one in detail["terminals"]] == [made["id"]]
    (listed,) = rig.http.get("/sessions/t/terminals").json()
    names = {"id": made["id"], "tmux_session": "cao-t", "tmux_window": made["name"], "working_directory": str(rig.wd)}
    assert names.items() <= listed.items(), "the names that CAO gives are there too"
    assert listed["description"] == "writes the code"
    answer = rig.http.get(f"/terminals/{made['id']}/working-directory")
    assert answer.json() == {"working_directory": str(rig.wd)}
    others = [rig.add_terminal(profile=profile) for profile in ("tester", "system_analyst")]
    assert [one["id"] for one in rig.http.get("/sessions/cao-t/terminals").json()] == [made["id"], *others]
    refused = rig.http.post("/sessions", params={**rig.wish(), "session_name": "t"})
    assert (refused.status_code, refused.json()) == (400, {"detail": "Session 'cao-t' already exists"})


@pytest.mark.parametrize(("path", "defer"), [("/sessions", True), ("/sessions/t/terminals", False)])
def test_a_message_that_comes_with_a_creation(rig: Rig, path: str, defer: bool) -> None:
    if path != "/sessions":
        rig.terminal()
    part = {"start_seconds": 0.5, "turns": [[{"save_prompt": "prompt"}, {"reply": "first"}], [{"reply": "second"}]]}
    wish = {**rig.wish(part), "defer_init": defer, **({"session_name": "t"} if path == "/sessions" else {})}
    made = rig.http.post(path, params=wish, json={"initial_message": "/begin\nwith é"})
    assert made.status_code == 201, made.text
    assert made.json()["initial_delivery"] == {"state": "pending" if defer else "delivered"}
    terminal = made.json()["id"]
    rig.send(terminal, "sent before it was ready, and yet after the first")
    rig.until_last(terminal, "second")
    assert (rig.wd / "prompt").read_text(encoding="utf-8") == "/begin\nwith é"
    assert rig.get(terminal)["initial_delivery"] == {"state": "delivered"}
    assert not (rig.state_folder.folder("cao-t", terminal) / "initial").exists()


def test_a_first_message_that_cannot_be_typed(rig: Rig) -> None:
    for message, code in (("", 400), ("\x1b", 400), ("é" * (2 * 1024 * 1024 + 1), 413)):
        answer = rig.http.post("/sessions", params=rig.wish(), json={"initial_message": message})
        assert answer.status_code == code
    assert rig.http.get("/sessions").json() == []


def test_a_failed_creation_leaves_no_folder(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("quintet.server.terminal.prepare.write_launch_script", _fail)
        assert rig.http.post("/sessions", params=rig.wish()).status_code == 500
    assert rig.http.post("/sessions", params={**rig.wish(), "args": ["--no-such-option"]}).status_code == 400
    assert not list(rig.state_folder.terminals.iterdir())
    first = rig.terminal()
    folders = list((rig.state_folder.terminals / "cao-t").iterdir())
    for target in (
        "terminal.prepare.write_launch_script",
        "tmux.connection.TmuxConnection.open_window",
        "terminal.tmux_session.TmuxSession._start",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"quintet.server.{target}", _fail)
            assert rig.http.post("/sessions/t/terminals", params=rig.wish()).status_code == 500, target
        assert list((rig.state_folder.terminals / "cao-t").iterdir()) == folders, target
    with monkeypatch.context() as patch:
        patch.setattr("quintet.server.terminal.tmux_session.TmuxSession._become_owner", _fail)
        assert rig.http.post("/sessions", params={**rig.wish(), "session_name": "u"}).status_code == 500
    assert [path.name for path in rig.state_folder.terminals.iterdir()] == ["cao-t"]
    assert rig.state_folder.session_names() == ["cao-t"]
    assert rig.status(first) == "idle"


def _fail(*_: object, **__: object) -> None:
    raise TmuxError("as ordered")


def test_a_name_is_given_where_none_is_asked_for(rig: Rig) -> None:
    made = rig.http.post("/sessions", params=rig.wish()).json()
    assert made["session_name"].startswith("cao-")
    assert rig.http.delete(f"/sessions/{made['session_name']}").status_code == 200


def test_terminals_come_up_side_by_side_and_are_answered_before_they_are_ready(rig: Rig) -> None:
    part = {"start_seconds": 1.0, "turns": [[{"reply": "late"}]]}
    ids = [rig.terminal(part, defer_init=True), *(rig.add_terminal(part, defer_init=True) for _ in range(2))]
    assert [rig.status(terminal) for terminal in ids] == ["unknown"] * 3
    assert [rig.ask(terminal, "sent before it was ready") for terminal in ids] == ["late"] * 3


def test_the_output_is_full_or_the_last_reply(rig: Rig) -> None:
    long = "the beginning\n" + "x" * (LONGEST_REPLY + 50) + "\nthe end"
    terminal = rig.terminal([[{"reply": "first"}], [{"reply": "second\n\nparagraph"}], [{"reply": long}]])
    assert rig.last(terminal) == ""
    assert rig.ask(terminal, "one") == "first"
    assert rig.ask(terminal, "two") == "second\n\nparagraph"
    answer = rig.http.get(f"/terminals/{terminal}/output")
    assert answer.json()["mode"] == "full"
    assert "first" in answer.json()["output"]
    assert rig.http.get(f"/terminals/{terminal}/output?mode=tail").status_code == 422
    told = rig.ask(terminal, "go")
    assert told.startswith("the beginning\nxxx")
    assert told.endswith("xxx\nthe end")
    assert f"\n[... {len(long) - LONGEST_REPLY} characters are left out here ...]\n" in told
    assert len(told) < LONGEST_REPLY + 100


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_unknown_terminals_and_sessions(rig: Rig, method: str) -> None:
    answer = rig.http.request(method, "/terminals/deadbeef")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Terminal 'deadbeef' not found"})
    answer = rig.http.request(method, "/sessions/cao-none")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Session 'cao-none' not found"})
    assert rig.http.request(method, "/terminals/DEADBEEF").status_code == 422
    assert rig.http.request(method, "/terminals/deadbeef1").status_code == 422


def test_what_cannot_be_created(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    wish = rig.wish()
    answer = rig.http.post("/sessions", params={**wish, "provider": "nope"})
    assert (answer.status_code, answer.json()) == (400, {"detail": "Unknown provider type: nope"})
    assert rig.http.post("/sessions", params={**wish, "working_directory": "/no/such"}).status_code == 400
    assert rig.http.post("/sessions", params={**wish, "agent_profile": "nobody"}).status_code == 400
    assert rig.http.post("/sessions", params={**wish, "model": "-x"}).status_code == 400
    assert rig.http.post("/sessions", params={"provider": "scripted"}).status_code == 422
    assert rig.http.post("/sessions/cao-none/terminals", params=wish).status_code == 404
    answer = rig.http.post("/sessions", params={**wish, "args": ["--no-such-option"], "session_name": "t"})
    assert (answer.status_code, "exited with code 2" in answer.json()["detail"]) == (400, True)
    monkeypatch.setattr("sys.executable", "no-such-python")
    answer = rig.http.post("/sessions", params=wish)
    told = {"detail": "no-such-python is not installed: it is not on the PATH"}
    assert (answer.status_code, answer.json()) == (400, told)
    assert rig.http.get("/sessions").json() == []


def test_deleting_twice(rig: Rig) -> None:
    first = rig.terminal()
    second = rig.add_terminal()
    assert rig.http.delete(f"/terminals/{second}").json() == {"success": True}
    assert rig.http.delete(f"/terminals/{second}").status_code == 404
    assert rig.status(first) == "idle"
    answer = rig.http.delete("/sessions/t")
    assert answer.json() == {"success": True, "deleted": ["cao-t"], "errors": []}
    assert rig.http.delete("/sessions/t").status_code == 404
    assert rig.http.get(f"/terminals/{first}").status_code == 404
    assert not list(rig.state_folder.sockets.iterdir())
    assert not list(rig.state_folder.terminals.iterdir())
    rig.terminal()


def test_exit_ends_the_agent_and_leaves_nothing_running(rig: Rig) -> None:
    first = rig.terminal()
    second = rig.add_terminal()
    assert rig.http.post(f"/terminals/{first}/exit").json() == {"success": True}
    gone = rig.get(first)
    assert gone["status"] == "error"
    assert gone["reason"] == "its program has exited with code 0"
    assert "Scripted agent" in gone["last_screen"]
    assert rig.send(first, "hello").status_code == 409
    assert rig.status(second) == "idle"
    assert rig.http.post(f"/terminals/{second}/exit").status_code == 200
    assert rig.http.post(f"/terminals/{second}/exit").status_code == 200
    assert rig.http.get("/sessions").json() == []
    assert not list(rig.state_folder.sockets.iterdir())
    assert rig.send(second, "hello").status_code == 409


def test_exit_of_an_agent_that_does_not_listen(rig: Rig) -> None:
    terminal = rig.terminal([[{"hang": True}]])
    rig.send(terminal, "never ends")
    rig.until(terminal, "processing")
    assert rig.http.post(f"/terminals/{terminal}/exit").json() == {"success": True}
    assert rig.status(terminal) == "error"


def test_keys(rig: Rig) -> None:
    terminal = rig.terminal()
    for key in "hi":
        assert rig.press(terminal, key).json() == {"success": True}
    rig.press(terminal, "Enter")
    rig.until_shown(terminal, "done 1")
    for bad in ("F13", "-t", "a b", "Enter;kill-server", ""):
        assert rig.press(terminal, bad).status_code == 400


def test_a_method_that_a_path_does_not_have(rig: Rig) -> None:
    answer = rig.http.put("/terminals/deadbeef")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")
    assert rig.http.get("/nowhere").status_code == 404
