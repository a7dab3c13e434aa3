"""`quintet doctor` and `WORKSPACE_SETUP` start what agents may have written."""

import json

import pytest

from tests.attacks.scene import Attack, attack


def with_agent(made: Attack, script: str) -> None:
    """An agent of the user's own whose program is a file of the project."""
    (made.run.wd / "agent.sh").write_text(script)
    own = {"mine": {"command": ["sh", "agent.sh"]}}
    (made.run.wd / "quintet.json").write_text(json.dumps({"providers": own}))


@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_doctor_tries_agents_where_a_run_would_start_them(sandbox: str) -> None:
    """Finding 17: outside only if the settings ask for no sandbox."""
    with attack() as made:
        reached = made.home / "reached"
        with_agent(made, f"echo tried >> tried; echo x > {reached}\n")
        made.run.call("doctor", PROVIDER="mine", SANDBOX=sandbox)
        assert (made.run.wd / "tried").exists()
        assert reached.exists() == (sandbox == "off")


@pytest.mark.attacks
def test_what_doctor_tries_sees_no_token_of_a_server() -> None:
    """Finding 17: the work tree's own `.tmp` has the address of a run's server, and its token."""
    with attack() as made:
        (made.run.wd / ".tmp").mkdir()
        (made.run.wd / ".tmp/server.json").write_text('{"token": "secret"}')
        with_agent(made, "cat .tmp/server.json > stolen; ls x > listed || true\n")
        made.run.call("doctor", PROVIDER="mine", SANDBOX="on")
        assert (made.run.wd / "stolen").read_text() == ""


@pytest.mark.attacks
def test_what_doctor_has_tried_leaves_nothing_running() -> None:
    """Finding 17: it would outlive the sandbox of the probe."""
    with attack() as made:
        loop = "until test -e go; do sleep 0.02; done; touch alive"
        with_agent(made, f"setsid env -i PATH=\"$PATH\" sh -c '{loop}' </dev/null >/dev/null 2>&1 &\necho x > tried\n")
        made.run.call("doctor", PROVIDER="mine", SANDBOX="on")
        assert (made.run.wd / "tried").exists()
        (made.run.wd / "go").touch()
        made.run.call("doctor", PROVIDER="scripted")
        assert not (made.run.wd / "alive").exists()


@pytest.mark.attacks
def test_the_setup_command_is_in_the_sandbox() -> None:
    """Principle 4: what it runs is in the work tree."""
    with attack(CLEANUP_ON_EXIT="1") as made:
        reached = made.home / "reached"
        setup = f"echo made > built.txt; echo x > {reached}; true"
        made.carry_out({}, "--worktree", WORKSPACE_SETUP=setup)
        assert made.code == 0, made.evidence
        assert not reached.exists()
        (built,) = made.run.root.rglob("built.txt")
        assert built.read_text() == "made\n"
