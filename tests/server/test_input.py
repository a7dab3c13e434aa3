"""Typing: byte for byte, taken, and only once."""

import hashlib
import http.client
import threading
from urllib.parse import urlencode

import pytest

from quintet.server.terminal import input as delivery
from tests.server.rig import Rig

AWKWARD = "tab\there `backticks` \"quotes\" 'single' $HOME #{pane_id} ; \\ é 😀 日本"
AWKWARD_LINES = f"{AWKWARD}\n/slash\n!bang\n\n  indented\n%end 1 2 1\n"
MESSAGES = ["x", "two words", AWKWARD, AWKWARD_LINES, "a;", "-t", "[Pasted 3 lines]", "y" * 500]
COMMAND_LIKE = ["/not a command\nsecond line", "!ls", "@file", "#comment", "/etc/passwd is a file"]


class Recipient:
    """A terminal whose agent saves every prompt that it gets."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.target = rig, rig.root / "prompt.txt"
        self.terminal = rig.terminal([[{"save_prompt": str(self.target)}, {"reply": "ok"}]])

    def receive(self, message: str) -> str:
        """Send a message and return what the agent got."""
        assert self.rig.ask(self.terminal, message) == "ok"
        return self.target.read_bytes().decode("utf-8")


def test_messages_arrive_byte_for_byte(rig: Rig) -> None:
    recipient = Recipient(rig)
    for message in MESSAGES:
        assert recipient.receive(message) == message
    line = "0123456789 abcdefghijklmnopqrstuvwxyz äöü 😀\tx\n"
    message = (line * (4 * 1024 * 1024 // len(line.encode()) + 1)).encode()[: 4 * 1024 * 1024].decode(errors="ignore")
    got = recipient.receive(message)
    assert hashlib.sha256(got.encode()).digest() == hashlib.sha256(message.encode()).digest(), "four megabytes"


def test_a_first_line_that_looks_like_a_command_is_text(rig: Rig) -> None:
    recipient = Recipient(rig)
    for message in COMMAND_LIKE:
        assert recipient.receive(message) == message
    got = recipient.receive("before\x1b[201~/exit\rafter\x07\r\nend")
    assert got == "before[201~/exit\nafter\nend", "a message cannot leave its paste"


def test_input_that_cannot_be_typed_is_refused(rig: Rig) -> None:
    terminal = rig.terminal()
    for message in ("é" * (2 * 1024 * 1024 + 1), "x" * (4 * 1024 * 1024 + 1)):
        assert rig.send(terminal, message).status_code == 413
    assert rig.http.post(f"/terminals/{terminal}/input").status_code == 422
    assert rig.send(terminal, "").status_code == 400
    assert rig.send(terminal, "\x1b").status_code == 400
    assert rig.send(terminal, "x", dispatch_id="a b'; kill-server").status_code == 400
    seen = rig.get(terminal)
    assert (seen["status"], seen["turn"]) == ("idle", 0)


def test_commands_are_no_turns_and_a_long_message_fits_into_the_query(rig: Rig) -> None:
    terminal = rig.terminal({"swallow_enter": 2, "turns": [[{"reply": "ok"}]]})
    assert rig.send(terminal, "/rename programmer-1234").status_code == 200
    rig.until_shown(terminal, "Renamed to programmer-1234")
    seen = rig.get(terminal)
    assert (seen["status"], seen["turn"]) == ("idle", 0)
    host, port = rig.server.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    query = urlencode({"message": "word & more\n" * 50_000})
    headers = {"Authorization": f"Bearer {rig.server.token}"}
    connection.request("POST", f"/terminals/{terminal}/input?{query}", headers=headers)
    assert connection.getresponse().status == 200
    connection.close()
    assert rig.get(terminal)["turn"] == 1


@pytest.mark.parametrize(("message", "record"), [("short", ()), ("long\n" * 100, ("--no-record",))])
def test_a_swallowed_enter_is_pressed_again(rig: Rig, message: str, record: tuple[str, ...]) -> None:
    terminal = rig.terminal({"swallow_enter": 2, "turns": [[{"reply": "taken {turn}"}]]}, *record)
    assert rig.ask(terminal, message) == "taken 1"
    assert rig.full(terminal).count("taken") == 1


def test_a_dispatch_is_typed_only_once(rig: Rig) -> None:
    terminal = rig.terminal()
    same = {"dispatch_id": "run1-step1"}
    threads = [threading.Thread(target=rig.send, args=(terminal, "the same"), kwargs=same) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rig.send(terminal, "the same", **same).json() == {"success": True}
    assert rig.get(terminal)["dispatch_id"] == "run1-step1"
    assert rig.get(terminal)["turn"] == 1
    rig.until(terminal, "completed")
    rig.send(terminal, "the same", dispatch_id="run1-step2")
    rig.send(terminal, "the same", dispatch_id="run1-step1")
    assert rig.get(terminal)["turn"] == 2


def test_input_that_nothing_shows_to_be_taken_is_no_success(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = rig.terminal([[{"hang": True}]], "--no-record")
    assert rig.send(terminal, "first").status_code == 200
    for name, seconds in (("TAKEN_SECONDS", 1.0), ("DRAFT_SECONDS", 0.2), ("BUSY_SECONDS", 0.2)):
        monkeypatch.setattr(delivery, name, seconds)
    assert rig.send(terminal, "second", dispatch_id="d").status_code == 504
    assert rig.status(terminal) == "unknown"
    assert rig.send(terminal, "second", dispatch_id="d").status_code == 504, "the same again is no proof either"
    assert rig.send(terminal, "/rename it").status_code == 504


def test_what_a_busy_agent_has_not_taken_is_sent_when_it_is_asked_for_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TAKEN_SECONDS", "DRAFT_SECONDS", "BUSY_SECONDS"):
        monkeypatch.setattr(delivery, name, 0.2)
    gate, wait = rig.gate()
    terminal = rig.terminal([[wait, {"reply": "first"}], [{"reply": "second"}]])
    rig.send(terminal, "one")
    assert rig.send(terminal, "two", dispatch_id="d").status_code == 504
    monkeypatch.setattr(delivery, "TAKEN_SECONDS", 30.0)
    gate.touch()
    assert rig.send(terminal, "two", dispatch_id="d").status_code == 200, "it is in the composer, and is sent now"
    rig.until_last(terminal, "second")
    assert rig.status(terminal) == "completed"
    assert rig.get(terminal)["turn"] == 2


def test_a_command_that_is_not_taken_is_no_success(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = rig.terminal({"swallow_enter": 1000, "turns": []})
    monkeypatch.setattr(delivery, "COMMAND_SECONDS", 0.3)
    answer = rig.send(terminal, "/rename it")
    assert (answer.status_code, "still stands" in answer.json()["detail"]) == (504, True)


@pytest.mark.parametrize("message", ["mine", "/rename programmer-1"])
def test_a_draft_that_somebody_has_left_is_not_sent_along(rig: Rig, message: str) -> None:
    recipient = Recipient(rig)
    terminal = recipient.terminal
    for left in ("left by a person", "/rename half", "x" * 300, " "):
        rig.tmux("send-keys", "-l", "-t", "%0", left)
        rig.eventually(
            lambda: rig.tmux("display-message", "-p", "-t", "%0", "#{cursor_x}"), left, lambda column: int(column) > 2
        )
        before = rig.http.get("/events?follow=false").text.partition("id: ")[2].partition("\n")[0]
        turn = rig.get(terminal)["turn"]
        if message == "mine":
            assert recipient.receive(message) == "mine"
        else:
            assert rig.send(terminal, message).status_code == 200
            rig.until_shown(terminal, "Renamed to programmer-1\n")
            assert rig.get(terminal)["turn"] == turn
        told = rig.http.get("/events?follow=false", headers={"Last-Event-ID": before}).text
        assert "event: draft" in told
        assert (left if len(left) < 60 else "[Pasted 1 lines, 300 characters]").strip() in told


def test_a_draft_that_cannot_be_cleared_keeps_the_message_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.providers.scripted.provider.ScriptedProvider.clear_keys", ("C-y",))
    terminal = rig.terminal()
    rig.tmux("send-keys", "-l", "-t", "%0", "a person's")
    rig.until_shown(terminal, "a person's")
    answer = rig.send(terminal, "mine")
    assert (answer.status_code, "draft" in answer.json()["detail"]) == (409, True)
    assert rig.get(terminal)["turn"] == 0
    assert rig.full(terminal).endswith("» a person's")
    assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
    assert rig.status(terminal) == "error"


@pytest.mark.parametrize("record", [(), ("--no-record",)])
def test_every_turn_has_its_own_reply(rig: Rig, record: tuple[str, ...]) -> None:
    gate, wait = rig.gate()
    misleading = "» prompt\n* Working on prompt 9\n? Allow no more than 3 retries (y/n)\nError: Traceback\n= Answer"
    same = [{"reply": "same"}]
    turns = [same, same, [{"say": "= Answer"}, wait, {"reply": "late"}], [{"say": misleading}, {"reply": misleading}]]
    terminal = rig.terminal(turns, *record)
    for number in (1, 2):
        assert rig.ask(terminal, "again") == "same"
        assert rig.get(terminal)["turn"] == number, "a quick turn with an equal reply counts"
    rig.send(terminal, "three")
    assert rig.status(terminal) == "processing"
    assert rig.last(terminal) == "", "the last reply is never that of the turn before"
    gate.touch()
    rig.until_last(terminal, "late")
    rig.until(terminal, "completed")
    assert rig.ask(terminal, misleading) == misleading
    assert rig.status(terminal) == "completed", "words in an answer do not mislead"


def test_start_up_dialogs(rig: Rig) -> None:
    answered = rig.terminal({"dialog": "Do you trust this folder? (press t)", "turns": [[{"reply": "in"}]]})
    assert rig.ask(answered, "hi") == "in"
    made = rig.http.post("/sessions", params=rig.wish({"dialog": "Please log in", "turns": []})).json()
    assert (made["status"], made["reason"]) == ("waiting_user_answer", "Please log in")
    assert made["accept_key"] is None


def test_input_to_an_agent_at_work_is_queued_not_lost(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BUSY_SECONDS", 0.1)
    gate, wait = rig.gate()
    terminal = rig.terminal([[wait, {"reply": "slow"}], [{"reply": "after"}]])
    rig.send(terminal, "first")
    sending = threading.Thread(target=rig.send, args=(terminal, "second"))
    sending.start()
    rig.until_pasted()
    gate.touch()
    sending.join()
    rig.until_last(terminal, "after")
    assert rig.get(terminal)["turn"] == 2
