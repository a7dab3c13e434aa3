"""Our own client on our own server, as the loop uses it."""

import threading
from functools import partial

import pytest

from quintet.api.backend import Backend
from quintet.api.client import ApiClient
from quintet.api.quintet_backend import backend_of
from quintet.api.status import TerminalStatus
from quintet.errors import ApiError, Refused, TerminalGone
from tests.server.rig import Rig


@pytest.fixture
def api(rig: Rig) -> Backend:
    return backend_of(ApiClient(rig.server.url, str(rig.wd), token=rig.server.token))


def until_status(rig: Rig, api: Backend, terminal: str, status: TerminalStatus) -> None:
    rig.eventually(lambda: api.get_terminal(terminal).status, str(status), lambda seen: seen is status)


def test_a_turn(rig: Rig, api: Backend) -> None:
    assert api.knows_dispatch_ids
    args = ["--scenario", rig.scenario([[{"ask_permission": "it"}, {"reply": "ok"}]])]
    made = api.create_session("programmer", "scripted", args=args)
    terminal = made.id
    second = api.create_terminal(made.session_name, "tester", "scripted").id
    until = partial(until_status, rig, api)
    for one in (terminal, second):
        until(one, TerminalStatus.IDLE)
    api.send_input(terminal, f"/rename programmer-{terminal}")
    api.send_input(terminal, "a\nlong prompt " * 10_000, "d1")
    until(terminal, TerminalStatus.WAITING_USER_ANSWER)
    api.accept_permission(terminal)
    until(terminal, TerminalStatus.COMPLETED)
    assert api.get_last_output(terminal) == "ok"
    assert api.get_terminal(terminal).dispatch_id == "d1"
    with pytest.raises(Refused, match="does not ask"):
        api.accept_permission(terminal)
    threads = [threading.Thread(target=api.exit_terminal, args=(one,)) for one in (terminal, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert api.get_terminal(terminal).status is TerminalStatus.ERROR
    assert rig.state_folder.session_names() == []
    api.close()


def test_refusals(rig: Rig, api: Backend) -> None:
    with pytest.raises(TerminalGone):
        api.get_terminal("deadbeef")
    with pytest.raises(ApiError, match="Unknown provider"):
        api.create_session("programmer", "nope")
    api.exit_terminal("deadbeef")
    api.close()
    assert rig.http.get("/sessions").json() == []
