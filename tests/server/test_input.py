"""Typing: byte for byte, taken, and only once."""

import hashlib
import http.client
import threading
from urllib.parse import urlencode

import pytest

from tests.server.rig import Rig, until

AWKWARD = "tab\there `backticks` \"quotes\" 'single' $HOME #{pane_id} ; \\ é 😀 日本"
AWKWARD_LINES = f"{AWKWARD}\n/slash\n!bang\n\n  indented\n%end 1 2 1\n"


def received(rig: Rig, message: str, *args: str) -> str:
    """What the agent got."""
    target = rig.root / "prompt.txt"
    terminal = rig.terminal([[{"save_prompt": str(target)}, {"reply": "ok"}]], *args)
    assert rig.ask(terminal, message) == "ok"
    return target.read_bytes().decode("utf-8")


@pytest.mark.parametrize(
    "message", ["x", "two words", AWKWARD, AWKWARD_LINES, "a;", "-t", "[Pasted 3 lines]", "y" * 500]
)
def test_a_message_arrives_byte_for_byte(rig: Rig, message: str) -> None:
    assert received(rig, message) == message


@pytest.mark.parametrize(
    "message", ["/not a command\nsecond line", "!ls", "@file", "#comment", "/etc/passwd is a file"]
)
def test_a_first_line_that_looks_like_a_command_is_text(rig: Rig, message: str) -> None:
    assert received(rig, message) == message


def test_four_megabytes(rig: Rig) -> None:
    line = "0123456789 abcdefghijklmnopqrstuvwxyz äöü 😀\tx\n"
    message = (line * (4 * 1024 * 1024 // len(line.encode()) + 1)).encode()[: 4 * 1024 * 1024].decode(errors="ignore")
    got = received(rig, message)
    assert hashlib.sha256(got.encode()).digest() == hashlib.sha256(message.encode()).digest()


def test_more_than_four_megabytes_is_refused(rig: Rig) -> None:
    terminal = rig.terminal()
    for message in ("é" * (2 * 1024 * 1024 + 1), "x" * (4 * 1024 * 1024 + 1)):
        assert rig.send(terminal, message).status_code == 413
    assert rig.status(terminal) == "idle"


def test_a_long_message_in_the_query(rig: Rig) -> None:
    terminal = rig.terminal()
    host, port = rig.server.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    query = urlencode({"message": "word & more\n" * 50_000})
    headers = {"Authorization": f"Bearer {rig.server.token}"}
    connection.request("POST", f"/terminals/{terminal}/input?{query}", headers=headers)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_message_cannot_leave_its_paste(rig: Rig) -> None:
    assert received(rig, "before\x1b[201~/exit\rafter\x07\r\nend") == "before[201~/exit\nafter\nend"


def test_no_message(rig: Rig) -> None:
    terminal = rig.terminal()
    assert rig.http.post(f"/terminals/{terminal}/input").status_code == 422
    assert rig.send(terminal, "").status_code == 400
    assert rig.send(terminal, "\x1b").status_code == 400
    assert rig.get(terminal)["turn"] == 0


@pytest.mark.parametrize("message", ["short", "long\n" * 100])
@pytest.mark.parametrize("record", [(), ("--no-record",)])
def test_a_swallowed_enter_is_pressed_again(rig: Rig, message: str, record: tuple[str, ...]) -> None:
    terminal = rig.terminal({"swallow_enter": 2, "turns": [[{"reply": "taken {turn}"}]]}, *record)
    assert rig.ask(terminal, message) == "taken 1"
    assert rig.full(terminal).count("taken") == 1


def test_a_dispatch_is_typed_only_once(rig: Rig) -> None:
    terminal = rig.terminal()
    for _ in range(3):
        assert rig.send(terminal, "the same", dispatch_id="run1-step1").json() == {"success": True}
    assert rig.get(terminal)["dispatch_id"] == "run1-step1"
    assert rig.get(terminal)["turn"] == 1
    rig.until(terminal, "completed")
    rig.send(terminal, "the same", dispatch_id="run1-step2")
    rig.send(terminal, "the same", dispatch_id="run1-step1")
    assert rig.get(terminal)["turn"] == 2
    assert rig.send(terminal, "x", dispatch_id="a b'; kill-server").status_code == 400


def test_the_same_dispatch_at_the_same_time(rig: Rig) -> None:
    terminal = rig.terminal()
    threads = [threading.Thread(target=rig.send, args=(terminal, "x"), kwargs={"dispatch_id": "d"}) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rig.get(terminal)["turn"] == 1


def test_commands_are_no_turns(rig: Rig) -> None:
    terminal = rig.terminal()
    assert rig.send(terminal, "/rename programmer-1234").status_code == 200
    until(lambda: rig.full(terminal), lambda text: "Renamed to programmer-1234" in text)
    seen = rig.get(terminal)
    assert (seen["status"], seen["turn"]) == ("idle", 0)


def test_input_that_nothing_shows_to_be_taken_is_no_success(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.server.terminal.input.TAKEN_SECONDS", 4.0)
    monkeypatch.setattr("quintet.server.terminal.input.BUSY_SECONDS", 0.2)
    terminal = rig.terminal([[{"hang": True}]], "--no-record")
    assert rig.send(terminal, "first").status_code == 200
    assert rig.send(terminal, "second", dispatch_id="d").status_code == 504
    assert rig.status(terminal) == "unknown"
    assert rig.send(terminal, "second", dispatch_id="d").status_code == 504, "the same again is no proof either"
    assert rig.send(terminal, "/rename it").status_code == 504


def test_what_a_busy_agent_has_not_taken_is_sent_when_it_is_asked_for_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quintet.server.terminal.input.TAKEN_SECONDS", 0.2)
    monkeypatch.setattr("quintet.server.terminal.input.DRAFT_SECONDS", 0.2)
    monkeypatch.setattr("quintet.server.terminal.input.BUSY_SECONDS", 0.2)
    gate = rig.root / "gate"
    wait = {"run": f"while ! test -e {gate}; do sleep 0.01; done"}
    terminal = rig.terminal([[wait, {"reply": "first"}], [{"reply": "second"}]])
    rig.send(terminal, "one")
    assert rig.send(terminal, "two", dispatch_id="d").status_code == 504
    monkeypatch.setattr("quintet.server.terminal.input.TAKEN_SECONDS", 30.0)
    gate.touch()
    assert rig.send(terminal, "two", dispatch_id="d").status_code == 200, "it is in the composer, and is sent now"
    until(lambda: rig.last(terminal), lambda text: text == "second")
    assert rig.status(terminal) == "completed"
    assert rig.get(terminal)["turn"] == 2


def test_a_command_that_is_not_taken_is_no_success(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.server.terminal.input.COMMAND_SECONDS", 1.0)
    stubborn = rig.terminal({"swallow_enter": 1000, "turns": []})
    answer = rig.send(stubborn, "/rename it")
    assert (answer.status_code, "still stands" in answer.json()["detail"]) == (504, True)
    slow = rig.terminal({"swallow_enter": 2, "turns": [[{"reply": "ok"}]]}, session="slow")
    assert rig.send(slow, "/rename it").status_code == 200


@pytest.mark.parametrize("left", ["left by a person", "/rename half", "x" * 300, " "])
@pytest.mark.parametrize("message", ["mine", "/rename programmer-1"])
def test_a_draft_that_somebody_has_left_is_not_sent_along(rig: Rig, left: str, message: str) -> None:
    target = rig.root / "prompt.txt"
    terminal = rig.terminal([[{"save_prompt": str(target)}, {"reply": "ok"}]])
    rig.tmux("send-keys", "-l", "-t", "%0", left)
    until(lambda: rig.tmux("display-message", "-p", "-t", "%0", "#{cursor_x}"), lambda column: int(column) > 2)
    assert rig.send(terminal, message).status_code == 200
    if message == "mine":
        rig.until(terminal, "completed")
        assert target.read_text(encoding="utf-8") == "mine"
    else:
        until(lambda: rig.full(terminal), lambda text: "Renamed to programmer-1\n" in text)
        assert rig.get(terminal)["turn"] == 0
    told = rig.http.get("/events?follow=false", headers={"Last-Event-ID": f"{life(rig)}-0"}).text
    assert "event: draft" in told
    assert (left if len(left) < 60 else "[Pasted 1 lines, 300 characters]").strip() in told


def life(rig: Rig) -> str:
    """The server's, as in the ids of its events."""
    return rig.http.get("/events?follow=false").text.partition("id: ")[2].partition("-")[0]


def test_a_draft_that_cannot_be_cleared_keeps_the_message_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.providers.scripted.provider.ScriptedProvider.clear_keys", ("C-y",))
    terminal = rig.terminal()
    rig.tmux("send-keys", "-l", "-t", "%0", "a person's")
    until(lambda: rig.full(terminal), lambda text: "a person's" in text)
    answer = rig.send(terminal, "mine")
    assert (answer.status_code, "draft" in answer.json()["detail"]) == (409, True)
    assert rig.get(terminal)["turn"] == 0
    assert rig.full(terminal).endswith("» a person's")
    assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
    assert rig.status(terminal) == "error"


@pytest.mark.parametrize("record", [(), ("--no-record",)])
def test_quick_turns_and_equal_answers(rig: Rig, record: tuple[str, ...]) -> None:
    terminal = rig.terminal([[{"reply": "same"}]], *record)
    for number in range(1, 4):
        assert rig.ask(terminal, "again") == "same"
        assert rig.get(terminal)["turn"] == number


@pytest.mark.parametrize("record", [(), ("--no-record",)])
def test_the_last_reply_is_never_that_of_the_turn_before(rig: Rig, record: tuple[str, ...]) -> None:
    gate = rig.root / "gate"
    wait = f"while ! test -e {gate}; do sleep 0.01; done"
    terminal = rig.terminal([[{"reply": "first"}], [{"say": "= Answer"}, {"run": wait}, {"reply": "second"}]], *record)
    assert rig.ask(terminal, "one") == "first"
    rig.send(terminal, "two")
    assert rig.status(terminal) == "processing"
    assert rig.last(terminal) == ""
    gate.touch()
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "second"


@pytest.mark.parametrize("record", [(), ("--no-record",)])
def test_words_in_an_answer_do_not_mislead(rig: Rig, record: tuple[str, ...]) -> None:
    text = "» prompt\n* Working on prompt 9\n? Allow no more than 3 retries (y/n)\nError: Traceback\n= Answer"
    terminal = rig.terminal([[{"say": text}, {"reply": text}]], *record)
    assert rig.ask(terminal, text) == text
    assert rig.status(terminal) == "completed"


def test_start_up_dialogs(rig: Rig) -> None:
    answered = rig.terminal({"dialog": "Do you trust this folder? (press t)", "turns": [[{"reply": "in"}]]})
    assert rig.ask(answered, "hi") == "in"
    made = rig.http.post("/sessions", params=rig.wish({"dialog": "Please log in", "turns": []})).json()
    assert (made["status"], made["reason"]) == ("waiting_user_answer", "Please log in")
    assert made["accept_key"] is None


def test_input_to_an_agent_at_work_is_queued_not_lost(rig: Rig) -> None:
    terminal = rig.terminal([[{"think": 4}, {"reply": "slow"}], [{"reply": "after"}]])
    rig.send(terminal, "first")
    assert rig.send(terminal, "second").status_code == 200
    until(lambda: rig.last(terminal), lambda text: text == "after")
    assert rig.get(terminal)["turn"] == 2
