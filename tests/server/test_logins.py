"""An agent that waits for its user before its first prompt: how long that may take, and whether anybody is there."""

import os
import subprocess

from quintet.providers.scripted.provider import ScriptedProvider
from tests.server.rig import Rig

PART = {"dialog": "It is not logged in; log in in its terminal", "turns": [[{"reply": "done"}]]}


def test_who_is_attached_is_told_of_while_the_agent_waits_for_its_user(rig: Rig) -> None:
    wish = {**rig.wish(PART), "session_name": "t", "defer_init": "true"}
    terminal = rig.http.post("/sessions", params=wish).json()["id"]
    found = rig.until(terminal, "waiting_user_answer")
    assert found["reason"] == PART["dialog"]
    assert (found["start_seconds"], found["attached"]) == (ScriptedProvider.start_seconds, False)
    primary, secondary = os.openpty()
    command = ["tmux", "-S", str(rig.state_folder.socket("cao-t")), "attach-session"]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdin=secondary, stdout=secondary, stderr=secondary, env=environment) as person:
        os.close(secondary)
        rig.eventually(lambda: rig.get(terminal)["attached"], "a person")
        person.terminate()
    os.close(primary)
    rig.eventually(lambda: rig.get(terminal)["attached"] is False, "nobody")


def test_an_agent_that_is_ready_waits_for_nobody(rig: Rig) -> None:
    found = rig.get(rig.terminal())
    assert (found["start_seconds"], found["attached"]) == (None, None)
