"""Agents of the Agent Client Protocol on a real server, in real terminals: prompts by a file, states by the record."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from quintet.api.models import Sandbox
from quintet.processes import children_of, has_ended
from quintet.providers.acp.host_settings import RECORD
from quintet.providers.editor import INPUT
from quintet.providers.registry import find_provider
from quintet.server.terminal.sandbox import sandbox_command
from quintet.server.terminal.terminal_spec import TerminalSpec
from tests.sandbox.need import need_bubblewrap
from tests.server.rig import Rig, until

FAKE = Path(__file__).parents[1] / "stub" / "fake_acp.py"


class Agents:
    """Terminals with the fake agent, which a client defines: the server knows nothing of it."""

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

    def host(self, terminal: str) -> int:
        listed = self.rig.tmux("list-panes", "-s", "-F", "#{pane_pid} #{@quintet}").splitlines()
        return next(int(line.split(" ", 1)[0]) for line in listed if f'"id":"{terminal}"' in line)


@pytest.fixture
def agents(rig: Rig) -> Agents:
    return Agents(rig)


def test_a_turn_is_read_from_messages(rig: Rig, agents: Agents) -> None:
    tool = {"kind": "execute", "title": "make test", "rawInput": {"command": "make test"}}
    usage = {"inputTokens": 10, "cachedReadTokens": 4, "outputTokens": 3}
    end = {"result": {"stopReason": "end_turn", "usage": usage}}
    terminal = agents.start([{"say": "I look."}, {"tool": tool}, {"say": "All "}, {"say": "well."}, {"end": end}])
    assert rig.status(terminal) == "idle"
    assert rig.ask(terminal, "go on") == "All well."
    told = rig.get(terminal)
    assert told["provider"] == "own-agent"
    assert told["usage"] == {"input_tokens": 14, "cached_tokens": 4, "output_tokens": 3}
    assert told["actions"]["items"][0]["text"] == "make test"
    assert told["failure"] is None
    assert agents.prompts() == ["go on"]


def test_a_conversation_has_no_name_and_a_rename_no_effect(rig: Rig, agents: Agents) -> None:
    terminal = agents.start()
    assert rig.send(terminal, "/rename tester-1").status_code == 200
    assert rig.status(terminal) == "idle"
    assert rig.ask(terminal, "/model is text") == "done"
    assert [text.lstrip("\u200b") for text in agents.prompts()] == ["/model is text"]


def test_a_long_prompt_with_anything_in_it_arrives_byte_for_byte(rig: Rig, agents: Agents) -> None:
    odd = (
        "".join(map(chr, range(32)))
        + "\x7f\x85\x9b \t'\"`$(x) \\n \r\n\r 🦔👩‍👩‍👧 é e\u0301 \u200b\u2028\ufeff\x1b[201~\x1b]0;x\x07"
    )
    text = "  " + (odd + "line\n") * (150_000 // len((odd + "line\n").encode()) + 1) + "\t\n"
    assert len(text.encode()) > 150_000
    terminal = agents.start()
    assert rig.ask(terminal, text) == "done"
    assert agents.prompts() == [text]
    assert rig.ask(terminal, "short") == "done"
    assert agents.prompts() == [text, "short"]
    assert not (agents.folder(terminal) / INPUT).exists()


def test_a_dispatch_is_handed_over_once(rig: Rig, agents: Agents) -> None:
    terminal = agents.start([{"say": "one"}], [{"say": "two"}])
    for _ in range(2):
        assert rig.send(terminal, "go", dispatch_id="d1").status_code == 200
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "one"
    assert agents.prompts() == ["go"]
    assert rig.get(terminal)["turn"] == 1


def test_a_failed_turn_is_no_answer(rig: Rig, agents: Agents) -> None:
    error = {"error": {"code": 429, "message": "Too many requests"}}
    terminal = agents.start([{"end": error}])
    rig.send(terminal, "go")
    told = rig.until(terminal, "completed")
    assert told["failure"]["kind"] == "rate_limit"
    assert rig.last(terminal) == ""


def test_a_note_of_the_host_is_the_reason_of_a_turn_at_work(rig: Rig, agents: Agents) -> None:
    gate = rig.root / "gate"
    terminal = agents.start([{"until_file": str(gate)}, {"say": "late"}])
    rig.send(terminal, "go")
    assert rig.get(terminal)["reason"] is None
    with (agents.folder(terminal) / RECORD).open("a") as record:
        record.write('{"event":"note","text":"no message for 60 s"}\n')
    told = rig.get(terminal)
    assert (told["status"], told["reason"]) == ("processing", "no message for 60 s")
    gate.touch()
    assert rig.until(terminal, "completed")["reason"] is None


@pytest.mark.parametrize(("answer", "said"), [("y", "answered proceed_once"), ("n", "answered cancel")])
def test_a_permission_waits_for_an_answer(answer: str, said: str, rig: Rig, agents: Agents) -> None:
    terminal = agents.start([{"ask": {}}], params={"permissions": "ask"})
    rig.send(terminal, "go", dispatch_id="d1")
    told = rig.until(terminal, "waiting_user_answer")
    assert told["accept_key"] == "y"
    assert rig.send(terminal, "another", dispatch_id="d2").status_code == 409
    assert rig.send(terminal, answer).status_code == 200
    rig.until(terminal, "completed")
    assert rig.last(terminal) == said


def test_without_asking_the_host_says_yes(rig: Rig, agents: Agents) -> None:
    assert rig.ask(agents.start([{"ask": {}}]), "go") == "answered proceed_once"


def test_a_variable_and_a_mode_reach_the_agent_and_nobody_else(rig: Rig, agents: Agents) -> None:
    terminal = agents.start([{"say": "{mode}"}], agent={"mode": "free", "env": {"MY_KEY": "s3cret"}})
    assert rig.ask(terminal, "go") == "free"
    (agent,) = agents.events("start")
    assert b"MY_KEY=s3cret" in Path(f"/proc/{agent}/environ").read_bytes().split(b"\0")
    assert b"s3cret" not in Path(f"/proc/{agent}/cmdline").read_bytes()
    host = agents.host(terminal)
    assert b"s3cret" not in Path(f"/proc/{host}/cmdline").read_bytes()
    assert "s3cret" not in rig.tmux("list-panes", "-a", "-F", "#{@quintet} #{pane_start_command}")
    other = rig.http.post("/sessions/t/terminals", params=rig.wish()).json()["id"]
    assert b"s3cret" not in Path(f"/proc/{agents.host(other)}/environ").read_bytes()
    kept = [path.read_bytes() for path in agents.folder(terminal).rglob("*") if path.is_file()]
    assert not [text for text in kept if b"s3cret" in text]


def test_a_restarted_server_finds_an_agent_that_it_does_not_know(rig: Rig, agents: Agents) -> None:
    terminal = agents.start([{"say": "one"}], [{"say": "two"}])
    assert rig.ask(terminal, "first") == "one"
    before = rig.get(terminal)
    rig.restart()
    assert rig.get(terminal) == before
    assert rig.ask(terminal, "second") == "two"
    assert agents.prompts() == ["first", "second"]


def test_a_prompt_that_was_left_is_taken_after_a_restart_once(rig: Rig, agents: Agents) -> None:
    gate = rig.root / "gate"
    terminal = agents.start([{"until_file": str(gate)}, {"say": "for a person"}], [{"say": "for the server"}])
    rig.tmux("send-keys", "-t", rig.pane(terminal), "a person's prompt", "Enter")
    until(agents.prompts, bool)
    threading.Thread(target=_send_anyhow, args=(rig, terminal), daemon=True).start()
    until(lambda: '"pasted":true' in rig.tmux("list-panes", "-a", "-F", "#{@quintet}"), bool)
    rig.stop()
    rig.start("t")
    assert rig.status(terminal) == "processing"
    gate.touch()
    rig.until(terminal, "completed")
    assert rig.last(terminal) == "for the server"
    assert rig.send(terminal, "left\tbehind", dispatch_id="d1").status_code == 200
    assert rig.get(terminal)["turn"] == 1
    assert agents.prompts() == ["a person's prompt", "left\tbehind"]


def test_a_turn_that_a_person_begins_at_the_same_moment_is_not_taken_for_the_servers(rig: Rig, agents: Agents) -> None:
    gate = rig.root / "gate"
    terminal = agents.start([{"until_file": str(gate)}, {"say": "for a person"}], [{"say": "for the server"}])
    rig.tmux("send-keys", "-t", rig.pane(terminal), "a person's prompt", "Enter")
    until(agents.prompts, bool)
    sending = threading.Thread(target=_send_anyhow, args=(rig, terminal), daemon=True)
    sending.start()
    until(lambda: '"pasted":true' in rig.tmux("list-panes", "-a", "-F", "#{@quintet}"), bool)
    with (agents.folder(terminal) / RECORD).open("a") as record:
        record.write('{"event":"begin","turn":1,"by":"person"}\n')
    for _ in range(5):
        assert rig.status(terminal) == "processing"
    assert sending.is_alive(), "the prompt was not taken yet"
    gate.touch()
    sending.join()
    rig.until(terminal, "completed")
    assert agents.prompts() == ["a person's prompt", "left\tbehind"]


def _send_anyhow(rig: Rig, terminal: str) -> None:
    try:
        rig.send(terminal, "left\tbehind", dispatch_id="d1")
    except httpx.HTTPError:
        return


def another(agents: Agents, lost: str, **more: Any) -> str:
    answer = agents.post("/sessions/t/terminals", params={"continues": lost}, **more)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_conversation_goes_on_after_a_kill_in_mid_turn(rig: Rig, agents: Agents) -> None:
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


def test_a_conversation_that_cannot_be_loaded_is_not_said_to_go_on(rig: Rig, agents: Agents) -> None:
    first = agents.start()
    assert rig.ask(first, "go") == "done"
    os.kill(agents.host(first), signal.SIGKILL)
    rig.until(first, "error")
    second = another(agents, first, script={"answers": {"session/load": {"error": {"code": 1, "message": "no"}}}})
    assert rig.get(second)["continues"] is None
    assert rig.ask(second, "go") == "done"


def ended(pids: list[int]) -> Callable[[], bool]:
    return lambda: all(map(has_ended, pids))


@pytest.mark.parametrize("loose", [False, True])
def test_a_killed_host_leaves_nothing_behind(loose: bool, rig: Rig, agents: Agents) -> None:
    pids = rig.root / "pids"
    terminal = agents.start([{"spawn": {"pids": str(pids), "loose": loose}}, {"hold": True}])
    rig.send(terminal, "go")
    tool = until(lambda: pids.read_text().split() if pids.exists() else [], bool)
    (agent,) = agents.events("start")
    os.kill(agents.host(terminal), signal.SIGKILL)
    rig.until(terminal, "error")
    until(ended([agent, *map(int, tool)]), bool)


def test_what_a_turn_leaves_running_is_ended_and_the_agent_is_not(rig: Rig, agents: Agents) -> None:
    pids = rig.root / "pids"
    terminal = agents.start([{"spawn": {"pids": str(pids), "loose": True}}, {"say": "done"}], [{"say": "again"}])
    rig.send(terminal, "go", dispatch_id="d1")
    rig.until(terminal, "completed")
    (tool,) = pids.read_text().split()
    answer = rig.http.post("/sessions/t/strays")
    assert answer.status_code == 200
    assert [tool in command for command in answer.json()["ended"][terminal]] == [True]
    assert has_ended(int(tool))
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
        sandbox={"tmp": str(tmp), "show": [str(rig.root)]},
    )
    assert answer.status_code == 201, answer.text
    terminal = answer.json()["id"]
    assert rig.ask(terminal, "in a box").endswith("in a box")
    assert rig.get(terminal)["sandbox"] == str(tmp)
    host = agents.host(terminal)
    below = psutil.Process(host).children(recursive=True)
    assert len(below) >= 2
    assert rig.http.delete(f"/terminals/{terminal}").status_code == 200
    until(ended([host, *(process.pid for process in below)]), bool)


@pytest.mark.parametrize("way", ["exit", "delete", "session"])
def test_no_process_outlives_its_terminal(way: str, rig: Rig, agents: Agents) -> None:
    pids = rig.root / "pids"
    terminal = agents.start([{"spawn": {"pids": str(pids), "loose": True}}, {"hold": True}])
    rig.send(terminal, "go")
    tool = until(lambda: pids.read_text().split() if pids.exists() else [], bool)
    host, (agent,) = agents.host(terminal), agents.events("start")
    match way:
        case "exit":
            answer = rig.http.post(f"/terminals/{terminal}/exit")
        case "delete":
            answer = rig.http.delete(f"/terminals/{terminal}")
        case _:
            answer = rig.http.delete("/sessions/t")
    assert answer.status_code == 200, answer.text
    until(ended([host, agent, *map(int, tool)]), bool)


def test_an_agent_at_rest_ends_by_the_hosts_own_command(rig: Rig, agents: Agents) -> None:
    terminal = agents.start()
    rig.ask(terminal, "go")
    host, (agent,) = agents.host(terminal), agents.events("start")
    assert children_of(host) == [agent]
    assert rig.http.post(f"/terminals/{terminal}/exit").status_code == 200
    assert ended([host, agent])()


def test_an_agent_without_a_login_is_one_line(agents: Agents) -> None:
    script = {"answers": {"session/new": {"error": {"code": -32000, "message": "Authentication required"}}}}
    answer = agents.post(script=script)
    assert answer.status_code == 400
    assert "Authentication required" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("params", "agent", "words"),
    [
        ({"provider": "codex"}, {}, "is taken"),
        ({"provider": "a b"}, {}, "is no name"),
        ({}, {"env": {"A-B": "x"}}, "letters, digits and _"),
        ({}, {"command": [""]}, "its command is no command"),
        ({}, {"command": ["no-such-program-anywhere"]}, "no-such-program-anywhere was not found on PATH"),
    ],
)
def test_a_bad_definition_is_refused(params: dict[str, str], agent: dict[str, Any], words: str, agents: Agents) -> None:
    answer = agents.post(agent=agent, params=params)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]


@pytest.mark.parametrize("name", ["gemini_cli", "copilot_cli"])
def test_a_sandbox_shows_an_agent_its_own_folders_and_no_others(name: str, rig: Rig) -> None:
    need_bubblewrap()
    home = rig.root / "home"
    for folder in (".gemini", ".copilot", ".qwen", ".codex"):
        (home / folder).mkdir(parents=True)
    provider = find_provider(name)
    assert provider is not None
    sandbox = Sandbox(tmp=str(rig.root))
    spec = TerminalSpec(provider, "tester", "", rig.wd, sandbox=sandbox)
    words = sandbox_command(rig.state_folder, rig.root / "folder", spec, {"HOME": str(home)})
    own = str(home / provider.registration.homes[0].removeprefix("~/"))
    assert words[words.index(own) - 1 : words.index(own) + 2] == ["--bind", own, own]
    others = {str(home / folder) for folder in (".gemini", ".copilot", ".qwen", ".codex")} - {own}
    assert {words[words.index(path) - 1] for path in others} == {"--tmpfs"}
