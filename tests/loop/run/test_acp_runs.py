"""Whole runs with an agent that only the user's settings know: the protocol, real tmux, a FAIL and then a PASS."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quintet.processes import has_ended
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER
from tests.loop.run.test_recovered_runs import events, nothing_is_left
from tests.stub.project import until
from tests.stub.replies import ANALYST_APPROVED, ANALYST_SUMMARY, FAIL, PASS, PROGRAMMER_APPROVED, TASK
from tests.watch.scripted import LONG_SUMMARY, Scripted, scripted, story

FAKE = Path(__file__).parents[2] / "stub" / "fake_acp.py"
SECRET = "s3cret-0f-the-agent"


def turn(reply: str, *before: dict[str, Any]) -> list[dict[str, Any]]:
    command = {"kind": "execute", "title": "ls", "rawInput": {"command": "ls"}}
    return [*before, {"tool": command}, {"respond": reply}, {"say": "My response is written."}]


def replies(before: dict[str, list[dict[str, Any]]] | None = None) -> list[tuple[str, list[dict[str, Any]]]]:
    """What the agent does, by what the prompt says of its role; `before`: by role, what it does first."""
    by_role = {
        "You are the peer of the system analyst": (PEER_ANALYST, ANALYST_APPROVED),
        "You are the system analyst": (ANALYST, ANALYST_SUMMARY),
        "You are the peer of the programmer": (PEER_PROGRAMMER, PROGRAMMER_APPROVED),
        "You are the programmer": (PROGRAMMER, LONG_SUMMARY),
        "You are the tester[^ ].*\n*Round 1 ": (TESTER, FAIL),
        "You are the tester": (TESTER, PASS),
    }
    return [(words, turn(reply, *(before or {}).get(role.name, ()))) for words, (role, reply) in by_role.items()]


class OwnAgent:
    """A project whose `quintet.json` defines an agent of the user's."""

    def __init__(self, project: Scripted, script: list[Any], roles: list[str], **settings: Any) -> None:
        self.project, self.log = project, project.root / "agent.log"
        path = project.root / "script.json"
        path.write_text(json.dumps({"log": str(self.log), "by_prompt": script}), encoding="utf-8")
        own = {"command": [sys.executable, str(FAKE), str(path)], "env": {"OWN_KEY": SECRET}}
        agents = {role: {"provider": "my-agent"} for role in roles}
        document = {"providers": {"my-agent": own}, "agents": agents, **settings}
        (project.wd / "quintet.json").write_text(json.dumps(document), encoding="utf-8")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "Settings")

    def logged(self, kind: str) -> list[Any]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [event[kind] for event in map(json.loads, lines) if kind in event]

    def requests(self, method: str) -> list[dict[str, Any]]:
        return [one["params"] for one in self.logged("in") if one.get("method") == method]

    def prompts(self) -> list[str]:
        return [params["prompt"][-1]["text"] for params in self.requests("session/prompt")]


@contextmanager
def own_agent(script: list[Any], roles: list[str] | None = None, **settings: Any) -> Iterator[OwnAgent]:
    with scripted(story()) as project:
        own = OwnAgent(project, script, roles or [role.name for role in ROLES], **settings)
        yield own
        project.call("stop", "--all")
        until(lambda: all(map(has_ended, own.logged("start"))), "no agent outlives its terminal")


def sent_prompts(project: Scripted) -> list[str]:
    return [(project.folder / one["file"]).read_text(encoding="utf-8") for one in events(project, "prompt_sent")]


def test_all_five_roles_on_an_agent_of_which_the_code_knows_nothing() -> None:
    task = TASK + "\n\nEvery byte counts:\t\"quoted\" 'too' \U0001f994 e\u0301 \x0b \\n\n" + "a long line\n" * 12_500
    with own_agent(replies()) as own:
        file = own.project.root / "task.md"
        file.write_text(task, encoding="utf-8")
        code, said = own.project.call("run", str(file), "--plain", PROVIDER="my-agent", PROMPT="")
        assert code == 0, said
        sent = sent_prompts(own.project)
        assert max(map(len, sent)) > 150_000
        assert own.prompts() == sent, "byte for byte"
        roles = [event["role"] for event in events(own.project, "prompt_sent")]
        assert roles == [role.name for role in (*ROLES, PROGRAMMER, PEER_PROGRAMMER, TESTER)]
        started = events(own.project, "terminal_created")
        assert {event["provider"] for event in started} == {"my-agent"}
        code, said = own.project.call("status", "--json")
        assert json.loads(said)["status"] == "PASS"
        assert SECRET not in said
        tree = [path for path in own.project.root.rglob("*") if path.is_file() and path.name != "quintet.json"]
        records = own.project.root / "x/quintet/records"
        leaks = [path for path in tree if SECRET.encode() in path.read_bytes() and records not in path.parents]
        assert leaks == []


def test_a_mixed_team() -> None:
    with own_agent(replies(), [TESTER.name, PEER_ANALYST.name]) as own:
        code, said = own.project.call("run", "--plain", CLEANUP_ON_EXIT="1")
        assert code == 0, said
        providers = {event["role"]: event["provider"] for event in events(own.project, "terminal_created")}
        assert providers == {role.name: "scripted" for role in ROLES} | {
            TESTER.name: "my-agent",
            PEER_ANALYST.name: "my-agent",
        }
        nothing_is_left(own.project)


def test_an_agent_that_is_killed_in_mid_turn_goes_on_with_its_conversation(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    dies = {"once": {"file": str(tmp_path / "first"), "steps": [{"spawn": {"pids": str(pids)}}, {"exit": 9}]}}
    with own_agent(replies({PROGRAMMER.name: [dies]})) as own:
        code, said = own.project.call("run", "--plain", CLEANUP_ON_EXIT="1", PROVIDER="my-agent")
        assert code == 0, said
        (lost,) = events(own.project, "terminal_lost")
        assert lost["role"] == PROGRAMMER.name
        (resumed,) = [one["continues"] for one in events(own.project, "terminal_created") if one["continues"]]
        assert resumed == lost["terminal"]
        (loaded,) = own.requests("session/load")
        assert loaded["sessionId"] in {params["sessionId"] for params in own.requests("session/prompt")}
        assert all(has_ended(int(pid)) for pid in pids.read_text().split()), "the tool of the killed agent"
        nothing_is_left(own.project)


def test_a_run_that_is_killed_goes_on(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with own_agent(replies({PROGRAMMER.name: [{"until_file": str(gate)}]})) as own:
        run = own.project.start("run", "--plain", PROVIDER="my-agent")
        until(lambda: len(own.prompts()) == 3, "the programmer is at work")
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        gate.touch()
        code, said = own.project.call("run", "--plain", PROVIDER="my-agent", CLEANUP_ON_EXIT="1")
        assert code == 0, said
        assert len(own.prompts()) == 8, "nothing was asked twice"
        assert len(own.logged("start")) == 5, "and nothing was started twice"
        nothing_is_left(own.project)


def test_a_row_that_was_not_tried_says_so_at_the_start() -> None:
    with own_agent(replies()) as own:
        program = own.project.root / "bin" / "goose"
        program.parent.mkdir()
        script = own.project.root / "script.json"
        program.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(FAKE), str(script)])}\n")
        program.chmod(0o700)
        (own.project.wd / "quintet.json").write_text(json.dumps({"agents": {"tester": {"provider": "goose"}}}))
        path = f"{program.parent}:{os.environ['PATH']}"
        code, said = own.project.call("run", "--plain", PATH=path, CLEANUP_ON_EXIT="1")
        assert code == 0, said
        assert " ".join(said.split()).count("goose was not tried with Quintet") == 1
