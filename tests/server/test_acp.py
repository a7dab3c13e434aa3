"""Agents of the Agent Client Protocol on a real server, in real terminals: prompts by a file, states by the record."""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from quintet.processes import children_of, has_ended
from quintet.providers.acp.host_settings import RECORD
from quintet.providers.editor import INPUT
from quintet.providers.registry import find_provider
from quintet.server.terminal.agent_home import make_agent_home
from tests.eventually import eventually
from tests.sandbox.need import need_bubblewrap
from tests.server.rig import Rig

FAKE = Path(__file__).parents[1] / "stub" / "fake_acp.py"


class Agents:
    """Terminals with the fake agent, which the client defines: the server does not know it."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.log = rig.root / "agent.log"

    def post(self, path: str = "/sessions", agent: dict[str, Any] | None = None, **more: Any) -> httpx.Response:
        script, params = more.pop("script", {}), more.pop("params", {})
        name = self.rig.root / f"script-{len(list(self.rig.root.iterdir()))}.json"
        name.write_text(json.dumps({"log": str(self.log), **script}), encoding="utf-8")
        told = {"command": [sys.executable, str(FAKE), str(name)], **(agent or {})}
        asked = {"provider": "own-agent", "agent_profile": "tester", "working_directory": str(self.rig.wd)}
        body = {"agent": told, **more}
        session = {"session_name": "t"} if path == "/sessions" else {}
        return self.rig.http.post(path, params={**asked, **session, **params}, json=body)

    def start(self, *turns: list[dict[str, Any]], **more: Any) -> str:
        script = {"turns": list(turns)} if turns else {}
        answer = self.post(script={**script, **more.pop("script", {})}, **more)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def events(self, kind: str = "in") -> list[Any]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [event[kind] for event in map(json.loads, lines) if kind in event]

    def prompts(self) -> list[str]:
        """The last text block of each prompt."""
        asked = [one["params"]["prompt"] for one in self.events() if one.get("method") == "session/prompt"]
        return [blocks[-1]["text"] for blocks in asked]

    def folder(self, terminal: str) -> Path:
        found = self.rig.state_folder.find_folder(terminal)
        assert found is not None
        return found

    def add_to_record(self, terminal: str, line: str) -> None:
        with (self.folder(terminal) / RECORD).open("a") as record:
            record.write(f"{line}\n")

    def tool(self) -> int:
        """Wait for the tool that the agent has spawned."""
        pids = self.rig.root / "pids"
        (pid,) = self.rig.eventually(lambda: pids.read_text().split() if pids.exists() else [], "the tool")
        return int(pid)

    @property
    def spawn(self) -> dict[str, Any]:
        return {"spawn": {"pids": str(self.rig.root / "pids"), "loose": True}}


@pytest.fixture
def agents(rig: Rig) -> Agents:
    return Agents(rig)


def test_turns_are_read_from_messages(rig: Rig, agents: Agents) -> None:
    tool = {"kind": "execute", "title": "make test", "rawInput": {"command": "make test"}}
    usage = {"inputTokens": 10, "cachedReadTokens": 4, "outputTokens": 3}
    end = {"result": {"stopReason": "end_turn", "usage": usage}}
    limit = {"error": {"code": 429, "message": "Too many requests"}}
    terminal = agents.start(
        [{"say": "I look."}, {"tool": tool}, {"say": "All "}, {"say": "well."}, {"end": end}],
        [{"ask": {}}],
        [{"end": limit}],
    )
    assert rig.send(terminal, "/rename tester-1").status_code == 200
    assert rig.status(terminal) == "idle", "a conversation has no name"
    assert rig.ask(terminal, "/model is text") == "All well."
    told = rig.get(terminal)
    assert told["provider"] == "own-agent"
    assert told["usage"] == {"input_tokens": 14, "cached_tokens": 4, "output_tokens": 3}
    assert told["actions"]["items"][0]["text"] == "make test"
    assert told["failure"] is None
    for _ in range(2):
        assert rig.send(terminal, "go", dispatch_id="d1").status_code == 200
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "answered proceed_once", "unless the user wants to be asked, the host says yes"
    assert rig.get(terminal)["turn"] == 2, "a dispatch is handed over once"
    rig.send(terminal, "fail")
    assert rig.until(terminal, "completed")["failure"]["kind"] == "rate_limit"
    assert rig.last(terminal) == ""
    assert [text.lstrip("\u200b") for text in agents.prompts()] == ["/model is text", "go", "fail"]


def test_a_long_prompt_with_anything_in_it_arrives_byte_for_byte(rig: Rig, agents: Agents) -> None:
    odd = (
        "".join(map(chr, range(32)))
        + "\x7f\x85\x9b \t'\"`$(x) \\n \r\n\r 🦔👩‍👩‍👧 é e\u0301 \u200b\u2028\ufeff\x1b[201~\x1b]0;x\x07"
    )
    text = "  " + (odd + "line\n") * (150_000 // len((odd + "line\n").encode()) + 1) + "\t\n"
    assert len(text.encode()) > 150_000
    terminal = agents.start()
    assert rig.ask(terminal, text) == "done"
    assert rig.ask(terminal, "short") == "done"
    assert agents.prompts() == [text, "short"]
    assert not (agents.folder(terminal) / INPUT).exists()
    (host,), (agent,) = children_of(rig.pane_pid(terminal)), agents.events("start")
    assert children_of(host) == [agent]
    assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
    assert all(map(has_ended, (host, agent))), "an agent at rest ends by the host's own command"


def test_a_note_of_the_host_is_the_reason_of_a_turn_at_work(rig: Rig, agents: Agents) -> None:
    gate = rig.root / "gate"
    terminal = agents.start([{"until_file": str(gate)}, {"say": "late"}])
    rig.send(terminal, "go")
    assert rig.get(terminal)["reason"] is None
    agents.add_to_record(terminal, '{"event":"note","text":"no message for 60 s"}')
    told = rig.get(terminal)
    assert (told["status"], told["reason"]) == ("processing", "no message for 60 s")
    gate.touch()
    assert rig.until(terminal, "completed")["reason"] is None


def test_a_permission_waits_for_an_answer(rig: Rig, agents: Agents) -> None:
    terminal = agents.start([{"ask": {}}], [{"ask": {}}], params={"permissions": "ask"})
    for answer, said in (("y", "answered proceed_once"), ("n", "answered cancel")):
        rig.send(terminal, "go", dispatch_id=f"d-{answer}")
        assert rig.until(terminal, "waiting_user_answer")["accept_key"] == "y"
        assert rig.send(terminal, "another", dispatch_id="d2").status_code == 409
        assert rig.send(terminal, answer).status_code == 200
        rig.until(terminal, "completed")
        assert rig.last(terminal) == said


def test_a_variable_and_a_mode_reach_the_agent_and_nobody_else(rig: Rig, agents: Agents) -> None:
    terminal = agents.start([{"say": "{mode}"}], agent={"mode": "free", "env": {"MY_KEY": "s3cret"}})
    assert rig.ask(terminal, "go") == "free"
    (agent,) = agents.events("start")
    assert b"MY_KEY=s3cret" in Path(f"/proc/{agent}/environ").read_bytes().split(b"\0")
    assert b"s3cret" not in Path(f"/proc/{agent}/cmdline").read_bytes()
    assert b"s3cret" not in Path(f"/proc/{rig.pane_pid(terminal)}/cmdline").read_bytes()
    assert "s3cret" not in rig.tmux("list-panes", "-a", "-F", "#{@quintet} #{pane_start_command}")
    assert b"s3cret" not in Path(f"/proc/{rig.pane_pid(rig.add_terminal())}/environ").read_bytes()
    kept = [path.read_bytes() for path in agents.folder(terminal).rglob("*") if path.is_file()]
    assert not [text for text in kept if b"s3cret" in text]


def test_a_prompt_that_was_left_is_taken_after_a_restart_once(own_rig: Rig) -> None:
    rig, agents = own_rig, Agents(own_rig)
    gate = rig.root / "gate"
    terminal = agents.start([{"until_file": str(gate)}, {"say": "for a person"}], [{"say": "for the server"}])
    rig.tmux("send-keys", "-t", rig.pane(terminal), "a person's prompt", "Enter")
    rig.eventually(agents.prompts, "the person's prompt")
    sending = threading.Thread(target=_send_anyhow, args=(rig, terminal), daemon=True)
    sending.start()
    rig.until_pasted()
    agents.add_to_record(terminal, '{"event":"begin","turn":1,"by":"person"}')
    for _ in range(5):
        assert rig.status(terminal) == "processing"
    assert sending.is_alive(), "a turn that a person begins at the same moment is not the server's"
    rig.restart()
    assert rig.status(terminal) == "processing", "it finds an agent that it does not know"
    gate.touch()
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "for the server"
    assert rig.send(terminal, "left\tbehind", dispatch_id="d1").status_code == 200
    assert rig.get(terminal)["turn"] == 1
    assert agents.prompts() == ["a person's prompt", "left\tbehind"]


def _send_anyhow(rig: Rig, terminal: str) -> None:
    try:
        rig.send(terminal, "left\tbehind", dispatch_id="d1")
    except httpx.HTTPError:
        return


def test_a_conversation_continues_after_a_kill_in_mid_turn(rig: Rig, agents: Agents) -> None:
    first = agents.start([{"say": "one"}], [{"hold": True}], agent={"mode": "free"})
    assert rig.ask(first, "go") == "one"
    rig.send(first, "work")
    (agent,) = agents.events("start")
    os.kill(agent, signal.SIGKILL)
    told = rig.until(first, "error")
    assert "exited with code 1" in told["reason"]
    assert "signal 9" in told["last_screen"]
    second = another(agents, first, agent={"mode": "free"}, script={"turns": [[{"say": "again in {mode}"}]]})
    assert rig.get(second)["continues"] == first
    assert rig.ask(second, "go on") == "again in free"
    (loaded,) = [one["params"]["sessionId"] for one in agents.events() if one.get("method") == "session/load"]
    assert loaded == f"session-{agent}"
    os.kill(rig.pane_pid(second), signal.SIGKILL)
    rig.until(second, "error")
    third = another(agents, second, script={"answers": {"session/load": {"error": {"code": 1, "message": "no"}}}})
    assert rig.get(third)["continues"] is None, "a conversation that cannot be loaded does not continue"
    assert rig.ask(third, "go") == "done"


def another(agents: Agents, lost: str, **more: Any) -> str:
    answer = agents.post("/sessions/t/terminals", params={"continues": lost}, **more)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.mark.parametrize("way", ["kill", "exit", "session"])
def test_no_process_outlives_its_terminal(way: str, rig: Rig, agents: Agents) -> None:
    terminal = agents.start([agents.spawn, {"hold": True}])
    rig.send(terminal, "go")
    pids = [agents.tool(), rig.pane_pid(terminal), *agents.events("start")]
    match way:
        case "kill":
            os.kill(rig.pane_pid(terminal), signal.SIGKILL)
            rig.until(terminal, "error")
        case "exit":
            assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
        case _:
            assert rig.http.delete("/sessions/t").status_code == 200
    rig.eventually(lambda: all(map(has_ended, pids)), "the end of all processes")


def test_what_a_turn_leaves_running_is_ended_and_the_agent_is_not(rig: Rig, agents: Agents) -> None:
    terminal = agents.start([agents.spawn, {"say": "done"}], [{"say": "again"}])
    rig.send(terminal, "go", dispatch_id="d1")
    rig.until(terminal, "completed")
    tool = agents.tool()
    answer = rig.http.post("/sessions/t/strays")
    assert answer.status_code == 200
    assert [str(tool) in command for command in answer.json()["ended"][terminal]] == [True]
    assert has_ended(tool)
    assert rig.ask(terminal, "go on") == "again", "the agent lives"


def test_an_agent_in_a_sandbox(rig: Rig, agents: Agents) -> None:
    need_bubblewrap()
    home, tmp = rig.root / "home", rig.root / "role"
    home.mkdir()
    tmp.mkdir()
    agents.log = rig.wd / "agent.log"  # the only place that it may write to
    answer = agents.post(
        script={"turns": [[{"say": "{prompt}"}]]},
        env_vars={"HOME": str(home)},
        sandbox={"tmp": str(tmp), "show": [str(rig.root), str(FAKE.parent)]},
    )
    assert answer.status_code == 201, answer.text
    terminal = answer.json()["id"]
    assert rig.ask(terminal, "in a box").endswith("in a box")
    assert rig.get(terminal)["sandbox"] == str(tmp)
    host = rig.pane_pid(terminal)
    below = [process.pid for process in psutil.Process(host).children(recursive=True)]
    assert len(below) >= 2
    assert rig.http.delete(f"/terminals/{terminal}").status_code == 200
    eventually(lambda: all(map(has_ended, (host, *below))), "the end of all processes")


def test_a_bad_definition_is_refused(agents: Agents) -> None:
    login = {"answers": {"session/new": {"error": {"code": -32000, "message": "Authentication required"}}}}
    for params, agent, script, words in (
        ({"provider": "codex"}, {}, {}, "is taken"),
        ({"provider": "a b"}, {}, {}, "is no name"),
        ({}, {"env": {"A-B": "x"}}, {}, "letters, digits and _"),
        ({}, {"command": [""]}, {}, "its command is no command"),
        ({}, {"command": ["no-such-program-anywhere"]}, {}, "no-such-program-anywhere was not found on PATH"),
        ({}, {}, login, "Authentication required"),
    ):
        answer = agents.post(agent=agent, params=params, script=script)
        assert (answer.status_code, words in answer.json()["detail"]) == (400, True), words


@pytest.mark.parametrize("name", ["gemini_cli", "copilot_cli"])
def test_a_sandbox_shows_an_agent_its_own_folders_and_no_others(name: str, tmp_path: Path) -> None:
    user = tmp_path / "user"
    for folder in (".gemini", ".copilot", ".qwen", ".codex"):
        (user / folder / "history").mkdir(parents=True)
        (user / folder / "settings.json").write_text("{}")
    provider = find_provider(name)
    assert provider is not None
    made = make_agent_home(tmp_path, provider.registration, {"HOME": str(user)}, tmp_path, None)
    own = provider.registration.homes[0].removeprefix("~/")
    assert (made.folder / own / "settings.json").read_text() == "{}"
    assert sorted(path.name for path in made.folder.iterdir() if path.name not in (".cache", ".gitconfig")) == [own]
    assert (made.folder / own / "history").exists() is (name != "gemini_cli"), "histories are left out"
