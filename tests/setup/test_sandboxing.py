"""What `quintet doctor` says of the sandbox, where it can be made and where not."""

import json
import os

import pytest

from quintet.config import Settings
from quintet.setup.permissions import agent_permissions
from tests.sandbox.need import need_bubblewrap
from tests.setup.conftest import Desk
from tests.setup.programs import codex

VERSION = 'test "$1" = --version && echo bubblewrap 0.8.0 && exit'
BROKEN = f"#!/bin/sh\n{VERSION}\necho bwrap: Creating new namespace failed >&2; exit 1\n"


def found(desk: Desk, name: str = "sandbox", **env: str) -> dict[str, str]:
    """A line of doctor about the sandbox. The programs of this machine are there beside those of the desk."""
    env = {"PATH": f"{desk.env['PATH']}:{os.environ['PATH']}", **env}
    (check,) = [
        check for check in json.loads(desk.quintet("doctor", "--json", **env).stdout)["checks"] if check["name"] == name
    ]
    return {str(name): str(value) for name, value in check.items()}


def test_one_that_works(desk: Desk) -> None:
    need_bubblewrap()
    desk.install(codex=codex())
    assert found(desk)["found"].startswith("off; SANDBOX=on is possible: bubblewrap ")
    on = found(desk, SANDBOX="on")
    assert (on["level"], on["found"][:15]) == ("ok", "on; bubblewrap ")


@pytest.mark.parametrize(("mode", "level"), [("off", "ok"), ("on", "failure")])
def test_one_that_does_not(desk: Desk, mode: str, level: str) -> None:
    desk.install(codex=codex(), bwrap=BROKEN)
    check = found(desk, SANDBOX=mode)
    assert check["level"] == level
    assert "bwrap: Creating new namespace failed" in check["found"]
    assert check["fix"]


def test_a_network_that_the_agents_need(desk: Desk) -> None:
    need_bubblewrap()
    check = found(desk, SANDBOX="on", SANDBOX_NETWORK="none")
    assert check["level"] == "failure"
    assert check["found"] == "SANDBOX_NETWORK=none: codex needs the network to reach a model; use keep or allow"


def test_an_allow_list_is_tried(desk: Desk) -> None:
    need_bubblewrap()
    desk.install(codex=codex())
    check = found(desk, "network", SANDBOX="on", SANDBOX_NETWORK="allow", OPENAI_BASE_URL="http://127.0.0.1:8080/v1")
    hosts = "api.openai.com, chatgpt.com, auth.openai.com, 127.0.0.1:8080"
    assert check["found"].startswith(f"only {hosts}; the proxy works")


def test_an_agent_whose_hosts_nobody_knows_has_to_be_given_some(desk: Desk) -> None:
    need_bubblewrap()
    allow = {"SANDBOX": "on", "SANDBOX_NETWORK": "allow", "PROVIDER": "kiro_cli"}
    check = found(desk, **allow)
    assert check["level"] == "failure"
    assert check["found"] == (
        "SANDBOX_NETWORK=allow: the hosts of kiro_cli are not known; name them in SANDBOX_DOMAINS"
    )
    check = found(desk, "network", **allow, SANDBOX_DOMAINS="models.example:8443")
    assert check["level"] == "warning"
    assert check["found"].startswith("only models.example:8443; the proxy works; not seen to reach a model through it")


def test_what_the_agents_may_do_is_told_with_the_sandbox() -> None:
    off, on = agent_permissions(Settings()), agent_permissions(Settings(sandbox="on"))
    assert off
    assert on
    assert "SANDBOX=on" in off.change
    assert on.summary == "the agents act without asking, in a sandbox"
