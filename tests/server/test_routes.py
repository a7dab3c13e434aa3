"""Paths, parameters, status codes and JSON are those of CAO 2.5.4."""

from datetime import datetime

import pytest

from quintet.server.terminal.agent_terminal import LONGEST_REPLY
from quintet.server.tmux.errors import TmuxError
from tests.server.rig import Rig, until


def test_health(rig: Rig) -> None:
    answer = rig.http.get("/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert answer.json()["service"] == "quintet"


def test_a_session_is_created_with_its_first_terminal(rig: Rig) -> None:
    answer = rig.http.post("/sessions", params={**rig.wish(), "session_name": "meas"})
    assert answer.status_code == 201
    made = answer.json()
    assert made["session_name"] == "cao-meas"
    assert len(made["id"]) == 8
    assert (made["provider"], made["agent_profile"], made["status"]) == ("scripted", "programmer", "idle")
    assert datetime.fromisoformat(made["last_active"]).tzinfo is not None
    assert rig.get(made["id"])["name"] == made["name"]


def test_sessions_are_listed_and_described(rig: Rig) -> None:
    terminal = rig.terminal()
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
    assert [one["id"] for one in detail["terminals"]] == [terminal]
    assert [one["id"] for one in rig.http.get("/sessions/t/terminals").json()] == [terminal]


def test_the_names_that_cao_gives_are_there_too(rig: Rig) -> None:
    body = {"env_vars": None, "description": "writes the code"}
    wish = {**rig.wish(), "session_name": "t", "caller_id": "0badcafe", "allowed_tools": "fs_read"}
    made = rig.http.post("/sessions", params=wish, json=body)
    assert made.status_code == 201, made.text
    (listed,) = rig.http.get("/sessions/t/terminals").json()
    assert {
        name: listed[name] for name in ("id", "tmux_session", "tmux_window", "working_directory", "description")
    } == {
        "id": made.json()["id"],
        "tmux_session": "cao-t",
        "tmux_window": made.json()["name"],
        "working_directory": str(rig.wd),
        "description": "writes the code",
    }
    rig.restart()
    assert rig.get(listed["id"])["description"] == "writes the code"


@pytest.mark.parametrize("defer", [False, True])
@pytest.mark.parametrize("path", ["/sessions", "/sessions/t/terminals"])
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
    until(lambda: rig.last(terminal), lambda text: text == "second")
    assert (rig.wd / "prompt").read_text(encoding="utf-8") == "/begin\nwith é"
    assert rig.get(terminal)["initial_delivery"] == {"state": "delivered"}
    assert not (rig.state_folder.folder("cao-t", terminal) / "initial").exists()


def test_a_first_message_outlives_its_server(rig: Rig) -> None:
    part = {"start_seconds": 1.0, "turns": [[{"reply": "taken {turn}"}]]}
    params = {**rig.wish(part), "defer_init": True, "session_name": "t"}
    terminal = rig.http.post("/sessions", params=params, json={"initial_message": "go"}).json()["id"]
    rig.restart()
    until(lambda: rig.last(terminal), lambda text: text == "taken 1")


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


def test_terminals_are_added_in_order(rig: Rig) -> None:
    first = rig.terminal()
    others = []
    for profile in ("tester", "system_analyst"):
        answer = rig.http.post("/sessions/cao-t/terminals", params=rig.wish(profile=profile))
        assert answer.status_code == 201
        assert answer.json()["status"] == "idle"
        others.append(answer.json()["id"])
    assert [one["id"] for one in rig.http.get("/sessions/cao-t/terminals").json()] == [first, *others]


def test_a_deferred_terminal_is_answered_before_it_is_ready(rig: Rig) -> None:
    part = {"start_seconds": 1.0, "turns": [[{"reply": "late"}]]}
    terminal = rig.terminal(part, defer_init=True)
    assert rig.status(terminal) == "unknown"
    assert rig.ask(terminal, "sent before it was ready") == "late"


def test_the_output_is_full_or_the_last_reply(rig: Rig) -> None:
    terminal = rig.terminal([[{"reply": "first"}], [{"reply": "second\n\nparagraph"}]])
    assert rig.last(terminal) == ""
    assert rig.ask(terminal, "one") == "first"
    assert rig.ask(terminal, "two") == "second\n\nparagraph"
    answer = rig.http.get(f"/terminals/{terminal}/output")
    assert answer.json()["mode"] == "full"
    assert "first" in answer.json()["output"]
    assert rig.http.get(f"/terminals/{terminal}/output?mode=tail").status_code == 422


def test_a_very_long_last_reply_is_shortened_in_its_middle(rig: Rig) -> None:
    reply = "the beginning\n" + "x" * (LONGEST_REPLY + 50) + "\nthe end"
    terminal = rig.terminal([[{"reply": reply}]])
    told = rig.ask(terminal, "go")
    assert told.startswith("the beginning\nxxx")
    assert told.endswith("xxx\nthe end")
    assert f"\n[... {len(reply) - LONGEST_REPLY} characters are left out here ...]\n" in told
    assert len(told) < LONGEST_REPLY + 100


def test_the_working_directory(rig: Rig) -> None:
    answer = rig.http.get(f"/terminals/{rig.terminal()}/working-directory")
    assert answer.json() == {"working_directory": str(rig.wd)}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_unknown_terminals_and_sessions(rig: Rig, method: str) -> None:
    answer = rig.http.request(method, "/terminals/deadbeef")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Terminal 'deadbeef' not found"})
    answer = rig.http.request(method, "/sessions/cao-none")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Session 'cao-none' not found"})
    assert rig.http.request(method, "/terminals/DEADBEEF").status_code == 422
    assert rig.http.request(method, "/terminals/deadbeef1").status_code == 422


def test_what_cannot_be_created(rig: Rig) -> None:
    wish = rig.wish()
    answer = rig.http.post("/sessions", params={**wish, "provider": "nope"})
    assert (answer.status_code, answer.json()) == (400, {"detail": "Unknown provider type: nope"})
    assert rig.http.post("/sessions", params={**wish, "working_directory": "/no/such"}).status_code == 400
    assert rig.http.post("/sessions", params={**wish, "agent_profile": "nobody"}).status_code == 400
    assert rig.http.post("/sessions", params={**wish, "model": "-x"}).status_code == 400
    assert rig.http.post("/sessions", params={"provider": "scripted"}).status_code == 422
    assert rig.http.post("/sessions/cao-none/terminals", params=wish).status_code == 404
    rig.terminal()
    answer = rig.http.post("/sessions", params={**wish, "session_name": "t"})
    assert (answer.status_code, answer.json()) == (400, {"detail": "Session 'cao-t' already exists"})


def test_deleting_twice(rig: Rig) -> None:
    first = rig.terminal()
    second = rig.http.post("/sessions/t/terminals", params=rig.wish()).json()["id"]
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
    second = rig.http.post("/sessions/t/terminals", params=rig.wish()).json()["id"]
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


def test_five_terminals_come_up_side_by_side(rig: Rig) -> None:
    part = {"start_seconds": 0.5, "turns": [[{"reply": "up"}]]}
    ids = [rig.terminal(part, defer_init=True)]
    for _ in range(4):
        answer = rig.http.post("/sessions/t/terminals", params={**rig.wish(part), "defer_init": True})
        assert answer.json()["status"] == "unknown"
        ids.append(answer.json()["id"])
    for terminal in ids:
        rig.until(terminal, "idle")
    assert [rig.ask(terminal, "hi") for terminal in ids] == ["up"] * 5


def test_keys(rig: Rig) -> None:
    terminal = rig.terminal()
    for key in "hi":
        assert rig.http.post(f"/terminals/{terminal}/key", params={"key": key}).json() == {"success": True}
    rig.http.post(f"/terminals/{terminal}/key", params={"key": "Enter"})
    assert "done 1" in rig.full(terminal) or rig.until(terminal, "idle")
    for bad in ("F13", "-t", "a b", "Enter;kill-server", ""):
        assert rig.http.post(f"/terminals/{terminal}/key", params={"key": bad}).status_code == 400


def test_a_program_that_cannot_be_started(rig: Rig) -> None:
    answer = rig.http.post("/sessions", params={**rig.wish(), "args": ["--no-such-option"], "session_name": "t"})
    assert answer.status_code == 400
    assert "exited with code 2" in answer.json()["detail"]
    assert rig.http.get("/sessions").json() == []


def test_a_method_that_a_path_does_not_have(rig: Rig) -> None:
    answer = rig.http.put("/terminals/deadbeef")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")
    assert rig.http.get("/nowhere").status_code == 404


def test_exit_after_a_crash_leaves_nothing_either(rig: Rig) -> None:
    crashed = rig.terminal([[{"crash": True}]])
    other = rig.http.post("/sessions/t/terminals", params=rig.wish()).json()["id"]
    rig.send(crashed, "go")
    rig.until(crashed, "error")
    for terminal in (crashed, other):
        assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
    assert not list(rig.state_folder.sockets.iterdir())
    assert rig.get(crashed)["reason"] == "its program was ended by signal 9"


def test_a_program_that_is_not_installed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "no-such-python")
    answer = rig.http.post("/sessions", params=rig.wish())
    assert (answer.status_code, answer.json()) == (
        400,
        {"detail": "no-such-python is not installed: it is not on the PATH"},
    )
    assert rig.http.get("/sessions").json() == []
