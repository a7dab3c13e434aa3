"""Dialogs: what may answer one, and that nothing else ever gets into one."""

from pathlib import Path

import pytest

from quintet.server.terminal import input as delivery
from quintet.server.terminal.agent_terminal import AgentTerminal
from tests.server.rig import Rig

REFUSED = ("please go on", "/rename analyst-1", "yes", "0", "12", "two\nlines")


def test_a_permission_is_given_by_the_key_that_the_provider_names(rig: Rig) -> None:
    ask = {"ask_permission": "rm -rf build"}
    terminal = rig.terminal([[ask, {"reply": "removed"}], [ask, {"reply": "thanks"}], [ask], [{"reply": "next"}]])
    assert rig.press(terminal, "accept").status_code == 409
    rig.send(terminal, "clean up")
    assert rig.until(terminal, "waiting_user_answer")["accept_key"] == "y"
    check_refused(rig, terminal)
    assert rig.press(terminal, "accept").json() == {"success": True}
    rig.until_last(terminal, "removed")

    rig.send(terminal, "again")
    rig.until(terminal, "waiting_user_answer")
    for message in ("y", "1", "the next prompt"):
        answer = rig.send(terminal, message, dispatch_id="d")
        assert answer.status_code == 409, "a prompt of the loop is never an answer"
        assert rig.status(terminal) == "waiting_user_answer"
    assert rig.send(terminal, "y").status_code == 200, "a permission is given as on other servers"
    rig.until_last(terminal, "thanks")
    assert rig.get(terminal)["turn"] == 2

    assert rig.send(terminal, "the next prompt", dispatch_id="d").status_code == 200, "a refused one is not forgotten"
    rig.until(terminal, "waiting_user_answer")
    assert rig.send(terminal, "n").status_code == 200
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "", "a no is no yes"
    assert rig.get(terminal)["turn"] == 3


def test_a_question_is_answered_by_its_user_alone(rig: Rig) -> None:
    terminal = rig.terminal([[{"ask_question": "red or blue"}, {"reply": "painted"}]])
    rig.send(terminal, "go")
    assert rig.until(terminal, "waiting_user_answer")["accept_key"] is None
    check_refused(rig, terminal)
    for answer in (rig.press(terminal, "accept"), rig.send(terminal, "y")):
        assert (answer.status_code, "only its user" in answer.json()["detail"]) == (409, True)
    assert rig.send(terminal, "2").status_code == 200
    rig.until(terminal, "completed")
    assert "chosen: 2" in rig.full(terminal)


def check_refused(rig: Rig, terminal: str) -> None:
    """Check that nothing but an answer is typed into a dialog."""
    before = rig.full(terminal).splitlines()[-1]
    for message in REFUSED:
        answer = rig.send(terminal, message)
        assert (answer.status_code, "its own question" in answer.json()["detail"]) == (409, True), message
        assert rig.status(terminal) == "waiting_user_answer", message
    assert rig.full(terminal).splitlines()[-1] == before


def test_a_dialog_that_comes_up_meanwhile_keeps_the_message_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.server.terminal.input.BUSY_SECONDS", 30.0)
    terminal, gate = at_work_until(rig)
    wait = delivery._wait_until_at_rest

    async def opened(terminal: AgentTerminal) -> None:
        gate.touch()
        await wait(terminal)

    monkeypatch.setattr("quintet.server.terminal.input._wait_until_at_rest", opened)
    assert rig.send(terminal, "a second prompt\nof two lines").status_code == 409
    assert rig.status(terminal) == "waiting_user_answer", "nobody has said yes"
    assert rig.get(terminal)["turn"] == 1


def test_enter_is_not_pressed_blindly(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.server.terminal.input.BUSY_SECONDS", 0.1)
    monkeypatch.setattr("quintet.server.terminal.input.DRAFT_SECONDS", 0.1)
    monkeypatch.setattr("quintet.server.terminal.input.TAKEN_SECONDS", 1.0)
    terminal, gate = at_work_until(rig)
    assert rig.send(terminal, "while it works").status_code == 504
    gate.touch()
    rig.until_shown(terminal, "? Allow")
    assert "? Allow" in rig.full(terminal).splitlines()[-1], "the Enter of the prompt has said yes"


def test_a_paste_that_gets_lost_is_no_success(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = rig.terminal()
    assert rig.ask(terminal, "first") == "done 1"
    monkeypatch.setattr("quintet.server.terminal.input.TAKEN_SECONDS", 1.0)
    monkeypatch.setattr("quintet.server.terminal.input.DRAFT_SECONDS", 0.2)

    async def lost(terminal: object, text: str) -> str:  # noqa: ARG001 - takes a paste's place, and changes the screen
        return "resize-window -t %0 -x 70 -y 20"

    monkeypatch.setattr("quintet.server.terminal.composer._paste_command", lost)
    assert rig.send(terminal, "second").status_code == 504
    assert rig.status(terminal) == "unknown"


def at_work_until(rig: Rig) -> tuple[str, Path]:
    """A terminal that works until a file is there, and asks for permission then."""
    gate, wait = rig.gate()
    terminal = rig.terminal([[wait, {"ask_permission": "this"}, {"reply": "done"}]])
    assert rig.send(terminal, "go").status_code == 200
    rig.until(terminal, "processing")
    return terminal, gate
