"""Dialogs: what may answer one, and that nothing else ever gets into one."""

from pathlib import Path

import pytest

from quintet.server.terminal import input as delivery
from quintet.server.terminal.agent_terminal import AgentTerminal
from tests.server.rig import Rig, until


def test_a_permission_is_given_by_the_key_that_the_provider_names(rig: Rig) -> None:
    terminal = rig.terminal([[{"ask_permission": "rm -rf build"}, {"reply": "removed"}]])
    assert rig.http.post(f"/terminals/{terminal}/key", params={"key": "accept"}).status_code == 409
    rig.send(terminal, "clean up")
    assert rig.until(terminal, "waiting_user_answer")["accept_key"] == "y"
    assert rig.send(terminal, "a long\nprompt").status_code == 409
    assert rig.http.post(f"/terminals/{terminal}/key", params={"key": "accept"}).json() == {"success": True}
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "removed"


def test_a_permission_is_given_as_on_other_servers(rig: Rig) -> None:
    terminal = rig.terminal([[{"ask_permission": "this"}, {"reply": "thanks"}]])
    rig.send(terminal, "go")
    rig.until(terminal, "waiting_user_answer")
    assert rig.send(terminal, "y").status_code == 200
    seen = rig.until(terminal, "completed")
    assert seen["turn"] == 1


@pytest.mark.parametrize("action", ["ask_permission", "ask_question"])
def test_what_is_no_answer_is_not_typed_into_a_dialog(rig: Rig, action: str) -> None:
    terminal = asking(rig, {action: "this"})
    for message in ("please go on", "/rename analyst-1", "yes", "0", "12", "two\nlines"):
        answer = rig.send(terminal, message)
        assert (answer.status_code, "its own question" in answer.json()["detail"]) == (409, True), message
        assert rig.status(terminal) == "waiting_user_answer", message
    assert "this" in rig.full(terminal).splitlines()[-1]


def test_a_prompt_of_the_loop_is_never_an_answer(rig: Rig) -> None:
    terminal = asking(rig, {"ask_permission": "this"})
    for message in ("y", "1", "the next prompt"):
        assert rig.send(terminal, message, dispatch_id="d").status_code == 409
        assert rig.status(terminal) == "waiting_user_answer"
    assert rig.get(terminal)["turn"] == 1
    assert rig.send(terminal, "y").status_code == 200
    rig.until(terminal, "completed")
    assert rig.send(terminal, "the next prompt", dispatch_id="d").status_code == 200, "a refused one is not forgotten"
    assert rig.get(terminal)["turn"] == 2


def test_a_no_is_no_yes(rig: Rig) -> None:
    terminal = asking(rig, {"ask_permission": "this"}, {"reply": "done"})
    assert rig.send(terminal, "n").status_code == 200
    rig.until(terminal, "completed")
    assert rig.last(terminal) == ""


def test_a_question_is_answered_by_its_user_alone(rig: Rig) -> None:
    terminal = asking(rig, {"ask_question": "red or blue"}, {"reply": "painted"})
    assert rig.get(terminal)["accept_key"] is None
    for answer in (rig.http.post(f"/terminals/{terminal}/key", params={"key": "accept"}), rig.send(terminal, "y")):
        assert (answer.status_code, "only its user" in answer.json()["detail"]) == (409, True)
    assert rig.send(terminal, "2").status_code == 200
    rig.until(terminal, "completed")
    assert "chosen: 2" in rig.full(terminal)


@pytest.mark.parametrize("message", ["a second prompt\nof two lines", "/rename it"])
def test_a_dialog_that_comes_up_meanwhile_keeps_the_message_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    monkeypatch.setattr("quintet.server.terminal.input.BUSY_SECONDS", 30.0)
    terminal, gate = at_work_until(rig)
    wait = delivery._wait_until_at_rest

    async def opened(terminal: AgentTerminal) -> None:
        gate.touch()
        await wait(terminal)

    monkeypatch.setattr("quintet.server.terminal.input._wait_until_at_rest", opened)
    assert rig.send(terminal, message).status_code == 409
    assert rig.status(terminal) == "waiting_user_answer", "nobody has said yes"
    assert rig.get(terminal)["turn"] == 1


def test_enter_is_not_pressed_blindly(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.server.terminal.input.BUSY_SECONDS", 0.1)
    monkeypatch.setattr("quintet.server.terminal.input.DRAFT_SECONDS", 0.1)
    monkeypatch.setattr("quintet.server.terminal.input.TAKEN_SECONDS", 1.0)
    terminal, gate = at_work_until(rig)
    assert rig.send(terminal, "while it works").status_code == 504
    gate.touch()
    until(lambda: rig.full(terminal), lambda text: "? Allow" in text)
    assert "? Allow" in rig.full(terminal).splitlines()[-1], "the Enter of the prompt has said yes"


def test_a_paste_that_gets_lost_is_no_success(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = rig.terminal()
    assert rig.ask(terminal, "first") == "done 1"
    monkeypatch.setattr("quintet.server.terminal.input.TAKEN_SECONDS", 4.0)
    monkeypatch.setattr("quintet.server.terminal.input.DRAFT_SECONDS", 0.2)

    async def lost(terminal: object) -> str:  # noqa: ARG001 - takes a paste's place, and changes the screen
        return "resize-window -t %0 -x 70 -y 20"

    monkeypatch.setattr("quintet.server.terminal.composer._paste_command", lost)
    assert rig.send(terminal, "second").status_code == 504
    assert rig.status(terminal) == "unknown"


def asking(rig: Rig, *actions: dict[str, str]) -> str:
    """A terminal in whose first turn the agent asks something."""
    terminal = rig.terminal([[*actions], [{"reply": "next"}]])
    assert rig.send(terminal, "go").status_code == 200
    rig.until(terminal, "waiting_user_answer")
    return terminal


def at_work_until(rig: Rig) -> tuple[str, Path]:
    """A terminal that works until a file is there, and asks for permission then."""
    gate = rig.root / "gate"
    wait = {"run": f"while ! test -e {gate}; do sleep 0.01; done"}
    terminal = rig.terminal([[wait, {"ask_permission": "this"}, {"reply": "done"}]])
    assert rig.send(terminal, "go").status_code == 200
    rig.until(terminal, "processing")
    return terminal, gate
