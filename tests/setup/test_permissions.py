"""Everybody who starts agents is told what they may do without asking, and how to change that."""

import json
from dataclasses import replace

import pytest

from quintet.config import Settings
from quintet.config.table import Agent
from quintet.roles import ROLES
from quintet.setup.permissions import agent_permissions
from tests.setup.conftest import Desk
from tests.setup.programs import codex
from tests.stub.replies import TASK
from tests.watch.scripted import scripted, story

WITHOUT_ASKING = "the agents act without asking and with all of your rights"
CHANGE = "PERMISSIONS=ask"


def test_agents_that_follow_a_script_are_no_danger() -> None:
    agents = {role.name: Agent("scripted", role.profile) for role in ROLES}
    assert agent_permissions(Settings(agents=agents)) is None
    agents["tester"] = Agent("claude_code", "tester")
    found = agent_permissions(Settings(agents=agents))
    assert found
    assert found.summary == WITHOUT_ASKING


def test_agents_that_ask() -> None:
    asking = Settings(permissions="ask")
    found, accepted = agent_permissions(asking), agent_permissions(replace(asking, auto_accept_permissions=True))
    assert found
    assert accepted
    assert found.summary.startswith("the agents ask before they act")
    assert found.change == ""
    assert accepted.summary.endswith("always get a yes")
    assert "AUTO_ACCEPT_PERMISSIONS" in accepted.change


def test_the_rights_are_those_of_the_servers_user() -> None:
    found = agent_permissions(Settings(api="http://127.0.0.1:9889"))
    assert found
    assert "the server's rights" in found.summary
    assert "where the server is Quintet's" in found.change


@pytest.mark.parametrize(
    ("provider", "args", "word"),
    [
        ("codex", ("--sandbox", "read-only"), "tester"),
        ("claude_code", ("--permission-mode", "plan"), "tester"),
        ("codex", ("--verbose",), ""),
    ],
)
def test_a_role_whose_own_arguments_decide_is_named(provider: str, args: tuple[str, ...], word: str) -> None:
    agents = {**Settings().agents, "tester": Agent(provider, "tester", args=args)}
    found = agent_permissions(Settings(agents=agents))
    assert found
    assert found.summary == (
        f"{WITHOUT_ASKING}; what {word} may do is in their own arguments" if word else WITHOUT_ASKING
    )


def test_init_says_it(desk: Desk) -> None:
    desk.install(codex=codex())
    said = " ".join(desk.quintet("init", "--no-openspec").output.split())
    assert WITHOUT_ASKING in said.replace("The agents", "the agents")
    assert CHANGE in said
    (desk.wd / "quintet.json").write_text(json.dumps({"handoff": {"permissions": "ask"}}))
    said = " ".join(desk.quintet("init", "--no-openspec").output.split())
    assert "agents ask before they act" in said
    (desk.wd / "quintet.json").write_text("{")
    assert desk.quintet("init", "--no-openspec").exit_code == 0, "doctor says what is wrong with it"


def test_doctor_says_it(desk: Desk) -> None:
    desk.install(codex=codex())
    found = json.loads(desk.quintet("doctor", "--json").output)["checks"]
    [check] = [one for one in found if one["name"] == "permissions"]
    assert (check["level"], check["found"]) == ("ok", WITHOUT_ASKING)
    assert CHANGE in check["fix"]
    asking = json.loads(desk.quintet("doctor", "--json", "--permissions", "ask").output)["checks"]
    assert next(one for one in asking if one["name"] == "permissions")["found"].startswith("the agents ask")


def test_a_dry_run_says_it(desk: Desk) -> None:
    (desk.wd / "task.md").write_text(TASK)
    said = " ".join(desk.quintet("run", "--dry-run", "task.md").output.split())
    assert WITHOUT_ASKING in said
    assert CHANGE in said
    assert "permissions" not in desk.quintet("run", "--dry-run", "task.md", "--provider", "scripted").output[:500]


def test_the_first_lines_of_a_run_say_it() -> None:
    with scripted(story()) as project:
        agents = {"tester": {"provider": "codex"}}
        (project.wd / "quintet.json").write_text(json.dumps({"agents": agents}))
        _, said = project.call("run", "--plain")
        lines = said.splitlines()
        assert WITHOUT_ASKING in lines[1]
        assert CHANGE in lines[2]
        assert max(map(len, lines[:3])) <= 80
        (project.wd / "quintet.json").unlink()
        assert "without asking" not in project.call("run", "--plain", "--no-resume", MAX_SECONDS="0.001")[1]
