"""A terminal that takes up the conversation of a lost one."""

import os
import signal

from tests.server.rig import Rig

PART = [[{"reply": "first"}], [{"reply": "second"}], [{"reply": "third"}]]


def kill(rig: Rig, terminal: str) -> None:
    os.kill(rig.pane_pid(terminal), signal.SIGKILL)
    rig.until(terminal, "error")


def another(rig: Rig, lost: str) -> str:
    return rig.add_terminal(PART, continues=lost)


def test_the_conversation_goes_on_in_another_terminal(rig: Rig) -> None:
    first = rig.terminal(PART)
    assert rig.ask(first, "go") == "first"
    kill(rig, first)
    second = another(rig, first)
    assert rig.get(second)["continues"] == first
    assert rig.ask(second, "go") == "second"
    kill(rig, second)
    third = another(rig, second)
    assert rig.ask(third, "go") == "third"
    for old in (first, second):
        assert rig.http.delete(f"/terminals/{old}").status_code == 200
        assert rig.http.get(f"/terminals/{old}").status_code == 404
        assert rig.state_folder.find_folder(old) is None
    assert rig.state_folder.find_folder(third) is not None


def test_a_terminal_without_a_conversation_has_none_to_continue(rig: Rig) -> None:
    first = rig.terminal(PART)
    rig.state_folder.remove_stray(first)
    assert rig.state_folder.find_folder(first) is not None, "the folder of a living terminal stays"
    answer = rig.http.post("/sessions/t/terminals", params={**rig.wish(PART), "continues": "../../etc"})
    assert answer.status_code in (400, 422)
    kill(rig, first)
    for lost in (first, "0badcafe"):
        second = another(rig, lost)
        assert rig.get(second)["continues"] is None
        assert rig.ask(second, "go") == "first"


def test_what_a_killed_tmux_server_has_left_is_found_and_removed(own_rig: Rig) -> None:
    rig = own_rig
    lost = rig.terminal(PART, session="gone")
    assert rig.ask(lost, "go") == "first"
    rig.terminal(PART)
    rig.tmux("kill-server", session="cao-gone")
    rig.restart()
    assert rig.http.get(f"/terminals/{lost}").status_code == 404
    assert rig.ask(another(rig, lost), "go") == "second"
    assert rig.http.delete(f"/terminals/{lost}").status_code == 404
    assert rig.state_folder.find_folder(lost) is None
