"""Runs with scripted agents in the sandbox: replies arrive, forged ones do not, and a resumed run keeps its sandbox."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintet.processes import has_ended
from tests.sandbox.need import need_bubblewrap
from tests.stub.project import project_in, until
from tests.stub.replies import PASS
from tests.watch.scripted import Scripted, scripted, story


def roles_of(run: Scripted) -> Path:
    """The folders of the roles in the run's record."""
    (found,) = run.root.glob("x/quintet/records/*/roles")
    return found


@pytest.fixture
def run() -> Iterator[Scripted]:
    need_bubblewrap()
    with scripted(story()) as made:
        yield made


def settings(run: Scripted, **more: str) -> dict[str, str]:
    """The script is in the folder for temporary files, which the sandbox replaces."""
    return {"SANDBOX": "on", "SANDBOX_SHOW": str(run.root / "scenario.json"), "CLEANUP_ON_EXIT": "1", **more}


def warned(run: Scripted) -> list[str]:
    return [str(event["text"]) for event in run.journal if event["event"] == "warned"]


def test_a_run_passes_without_a_network(run: Scripted) -> None:
    code, said = run.call("run", "--plain", **settings(run, SANDBOX_NETWORK="none"))
    assert code == 0, said
    assert {path.name for path in roles_of(run).iterdir()} == {
        "analyst", "peer_analyst", "programmer", "peer_programmer", "tester",
    }  # fmt: skip
    assert list((run.wd / ".tmp/agent-responses").glob("*.md")) == [], "nobody has written there"
    assert run.git("status", "--porcelain", "--ignored").splitlines() == ["!! .tmp/"]


def test_a_forged_reply_is_nobodys(run: Scripted) -> None:
    roles: dict[str, Any] = story()
    forge = {"write": {"path": ".tmp/agent-responses/test_result.md", "text": PASS}}
    roles["programmer"] = [[forge, *turn] for turn in roles["programmer"]]
    run.script(roles)
    code, said = run.call("run", "--plain", **settings(run))
    assert code == 0, said
    assert warned(run) == []
    assert (roles_of(run) / "programmer/agent-responses/test_result.md").exists()
    assert [event["verdict"] for event in run.journal if event["event"] == "test_judged"] == ["FAIL", "PASS"]


@pytest.mark.parametrize(("again", "lost"), [("on", 0), ("off", 5)])
def test_a_run_that_was_killed_goes_on_in_the_sandbox_that_it_asks_for(run: Scripted, again: str, lost: int) -> None:
    run.script({**story(), "analyst": story(think=2.0)["analyst"]})
    process = run.start("run", "--plain", **settings(run, CLEANUP_ON_EXIT="0"))
    run.until_there("*/prompts/001-analyst.md")
    process.kill()
    process.wait()
    code, said = run.call("run", "--plain", **settings(run, SANDBOX=again))
    assert code == 0, said
    reasons = [event["reason"] for event in run.journal if event["event"] == "terminal_lost"]
    assert reasons == ["it was started with another setting of SANDBOX"] * lost


def test_terminals_and_all_below_them_end_with_the_run(run: Scripted) -> None:
    roles: dict[str, Any] = story()
    roles["tester"] = [[{"run": "setsid sleep 5001 </dev/null >/dev/null 2>&1 & echo $!"}, *roles["tester"][-1]]]
    run.script(roles)
    code, said = run.call("run", "--plain", **settings(run, END_STRAYS="0"))
    assert code == 0, said
    until(lambda: not [pid for pid in _sleeping() if not has_ended(pid)], "the end of what the tester left")


def _sleeping() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and b"sleep\x005001" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_without_bubblewrap_nothing_is_started(run: Scripted) -> None:
    programs = run.root / "bin"
    programs.mkdir()
    for name in ("tmux", "git", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    code, said = run.call("run", "--plain", **settings(run, PATH=str(programs)))
    assert code == 1
    assert "SANDBOX=on: bubblewrap is not installed: bwrap is not on the PATH; install bubblewrap" in said
    assert "Traceback" not in said
    assert not (run.wd / ".tmp").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"SANDBOX_NETWORK": "none", "PROVIDER": "codex"}, "SANDBOX_NETWORK=none: codex needs the network to reach a"),
        ({"SANDBOX": "yes"}, "SANDBOX: found"),
        ({"SANDBOX_WRITE": "/"}, "SANDBOX_WRITE: found"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Scripted, given: dict[str, str], told: str) -> None:
    code, said = run.call("run", "--plain", **settings(run, **given))
    assert code == 1
    assert told in said
    assert not (run.wd / ".tmp").exists()


def test_another_server_is_refused(tmp_path: Path) -> None:
    need_bubblewrap()
    with project_in(tmp_path) as project:
        done = project.run(SANDBOX="on")
        assert done.code == 1
        assert "only Quintet's own terminal server can make a sandbox" in done.text
        assert project.stub.of("POST", "/sessions") == []
