"""`quintet providers`, and what `quintet doctor` finds of agents that speak the Agent Client Protocol."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from quintet.processes import has_ended
from quintet.providers.registry import provider_names
from tests.setup.conftest import Desk
from tests.setup.programs import codex
from tests.setup.test_doctor import checks, level
from tests.stub.server import Stub, serving

FAKE = Path(__file__).parents[1] / "stub" / "fake_acp.py"
LOGIN = {"session/new": {"error": {"code": -32000, "message": "Authentication required"}}}


def agent(desk: Desk, release: str = "0.61.0", **script: Any) -> str:
    """A program that tells a release, and else speaks the protocol."""
    path = desk.root / "script.json"
    path.write_text(json.dumps({"log": str(desk.root / "agent.log"), **script}), encoding="utf-8")
    tells = f'case "$*" in *--version*) echo {release}; exit 0 ;; esac' if release else ""
    return f"#!/bin/sh\n{tells}\nexec {shlex.join([sys.executable, str(FAKE), str(path)])}\n"


def started(desk: Desk) -> list[int]:
    lines = (desk.root / "agent.log").read_text(encoding="utf-8").splitlines()
    return [event["start"] for event in map(json.loads, lines) if "start" in event]


def listed(desk: Desk, **env: str) -> dict[str, dict[str, Any]]:
    done = desk.quintet("providers", "--json", **env)
    assert done.exit_code == 0, done.output
    return {one["name"]: one for one in json.loads(done.stdout)["providers"]}


def test_all_are_listed_with_what_is_known_of_them(desk: Desk) -> None:
    desk.install(codex=codex(), gemini=agent(desk))
    own = {"mine": {"command": ["mine", "acp"], "env": {"K": "s3cret"}, "install": "make mine"}}
    (desk.wd / "quintet.json").write_text(json.dumps({"providers": own}))
    found = listed(desk, GEMINI_API_KEY="x")
    assert list(found) == [*provider_names(), "mine"]
    gemini = found["gemini_cli"]
    assert (gemini["version"], gemini["login"], gemini["tried"]) == ("0.61.0", "logged in", "0.61.0")
    assert gemini["driven"] == "messages of the protocol"
    assert found["codex"]["driven"] == "screen and record"
    assert (found["goose"]["program"], found["goose"]["tried"]) == ("", "")
    assert (found["mine"]["own"], found["mine"]["install"]) == (True, "make mine")
    said = desk.quintet("providers").output
    assert "s3cret" not in said + json.dumps(found)
    assert max(map(len, said.splitlines())) <= 80
    assert "not installed: make mine" in said
    assert "not tried" in said


def test_a_login_is_seen_by_a_variable_or_a_file_and_not_read(desk: Desk) -> None:
    desk.install(gemini=agent(desk))
    assert listed(desk)["gemini_cli"]["login"] == "no login was found"
    file = desk.root / "home/.gemini/oauth_creds.json"
    file.parent.mkdir()
    file.touch(mode=0)
    assert listed(desk)["gemini_cli"]["login"] == "logged in"


def test_doctor_asks_an_agent_for_a_conversation(desk: Desk) -> None:
    desk.install(gemini=agent(desk))
    _, found = checks(desk, PROVIDER="gemini_cli", GEMINI_API_KEY="x")
    assert level(found, "gemini_cli") == "ok"
    assert "goose" not in found
    (pid,) = started(desk)
    assert has_ended(pid)


@pytest.mark.parametrize(
    ("release", "script", "words"),
    [
        ("0.61.0", {"answers": LOGIN}, "Authentication required"),
        ("0.61.0", {"on_start": [{"errors": "no such option\n"}, {"exit": 3}]}, "no such option"),
        ("0.61.0", {"on_start": [{"exit": 3}]}, "it has ended, or has not answered initialize"),
        ("0.61.0", {"answers": {"initialize": {"error": {"code": -1, "message": "x" * 3000}}}}, "xxx"),
    ],
)
def test_an_agent_that_gives_none_is_a_failure_in_one_line(
    release: str, script: dict[str, Any], words: str, desk: Desk
) -> None:
    desk.install(gemini=agent(desk, release, **script))
    code, found = checks(desk, PROVIDER="gemini_cli", GEMINI_API_KEY="x")
    assert code == 1
    refused = found["gemini_cli"][-1]
    assert refused["level"] == "failure"
    assert words in refused["found"]
    assert "log in" in refused["fix"]
    assert all(map(has_ended, started(desk)))


def test_doctor_says_that_a_row_was_not_tried(desk: Desk) -> None:
    desk.install(goose=agent(desk, ""))
    code, found = checks(desk, PROVIDER="goose")
    assert "was not tried with Quintet" in found["goose"][0]["found"]
    assert (code, level(found, "goose")) == (0, "warning")


def test_doctor_checks_an_agent_of_the_users_own(desk: Desk) -> None:
    desk.install(mine=agent(desk, ""))
    document: dict[str, Any] = {"provider": "mine", "providers": {"mine": {"command": ["mine"], "install": "make"}}}
    (desk.wd / "quintet.json").write_text(json.dumps(document))
    code, found = checks(desk)
    assert (code, level(found, "mine")) == (0, "ok")
    document["providers"]["mine"]["command"] = ["mime"]
    (desk.wd / "quintet.json").write_text(json.dumps(document))
    code, found = checks(desk)
    assert (code, level(found, "mine"), found["mine"][0]["fix"]) == (1, "failure", "make")


def test_a_server_that_cannot_start_an_agent_of_the_users_own_is_found_before_a_run_finds_it(desk: Desk) -> None:
    document = {"provider": "mine", "providers": {"mine": {"command": ["mine"]}}}
    (desk.wd / "quintet.json").write_text(json.dumps(document))
    with serving(Stub()) as cao:
        code, found = checks(desk, "--api", cao.url)
    assert (code, level(found, "server")) == (1, "failure")
    assert "mine: this terminal server cannot start an agent of your own" in found["server"][0]["found"]
