"""What an agent did in its last turn is told with its terminal, once the turn has ended."""

from typing import Any

from quintet.actions import Action, ActionKind, TurnActions
from quintet.api.cao_backend import CaoBackend
from quintet.api.client import ApiClient
from quintet.api.quintet_backend import backend_of
from tests.server.rig import Rig

WORK = [
    {"run": "echo hello > new.txt; exit 3"},
    {"read": "new.txt"},
    {"read": "missing.txt"},
    {"write": {"path": "more.txt", "text": "x"}},
    {"reply": "done"},
]


def asked(rig: Rig, terminal: str, message: str = "Do it.") -> dict[str, Any]:
    rig.ask(terminal, message)
    return rig.get(terminal)


def test_the_actions_of_the_last_turn(rig: Rig) -> None:
    terminal = rig.terminal([WORK, [{"reply": "nothing was run"}]])
    assert rig.get(terminal)["actions"] is None, "no turn has ended"
    assert asked(rig, terminal)["actions"]["items"] == [
        {"kind": "command", "text": "echo hello > new.txt; exit 3", "exit_code": 3},
        {"kind": "read", "text": "new.txt", "exit_code": None},
        {"kind": "change", "text": "more.txt", "exit_code": None},
    ]
    assert asked(rig, terminal, "Again.")["actions"] == {"items": [], "left_out": 0}


def test_the_client_tells_nothing_done_from_nothing_known(rig: Rig) -> None:
    terminal = rig.terminal([[{"run": "true"}, {"reply": "done"}]])
    client = ApiClient(rig.server.url, str(rig.wd), rig.server.token)
    backend = backend_of(client)
    assert backend.get_terminal(terminal).actions is None
    asked(rig, terminal)
    ran = Action(kind=ActionKind.COMMAND, text="true", exit_code=0)
    assert backend.get_terminal(terminal).actions == TurnActions(items=(ran,))
    silent = rig.terminal([[{"run": "true"}, {"reply": "done"}]], "--no-record", session="other")
    asked(rig, silent)
    assert backend.get_terminal(silent).actions is None
    assert CaoBackend(client).get_terminal(terminal).actions is None, "another server tells of none"
    client.close()
