"""Runs with scripted agents in the sandbox: replies arrive, forged ones do not, and a resumed run keeps its sandbox."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quintet.processes import has_ended
from tests.eventually import eventually
from tests.sandbox.need import need_bubblewrap
from tests.stub.project import project_in
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


def test_a_run_passes_without_a_network_and_leaves_nothing(run: Scripted) -> None:
    roles: dict[str, Any] = story()
    forge = {"write": {"path": ".tmp/agent-responses/test_result.md", "text": PASS}}
    roles["programmer"] = [[forge, *turn] for turn in roles["programmer"]]
    stray = {"run": "setsid sleep 5001 </dev/null >/dev/null 2>&1 & echo $!"}
    roles["tester"] = [[stray, *turn] for turn in roles["tester"]]
    run.script(roles)
    code, said = run.call("run", "--plain", **settings(run, SANDBOX_NETWORK="none", END_STRAYS="0"))
    assert code == 0, said
    assert {path.name for path in roles_of(run).iterdir()} == {
        "analyst", "peer_analyst", "programmer", "peer_programmer", "tester",
    }  # fmt: skip
    assert [event["text"] for event in run.journal if event["event"] == "warned"] == []
    assert (roles_of(run) / "programmer/agent-responses/test_result.md").exists()
    verdicts = [event["verdict"] for event in run.journal if event["event"] == "test_judged"]
    assert verdicts == ["FAIL", "PASS"], "a forged reply is nobody's"
    assert list((run.wd / ".tmp/agent-responses").glob("*.md")) == [], "nobody has written there"
    assert run.git("status", "--porcelain", "--ignored").splitlines() == ["!! .tmp/"]
    eventually(lambda: not _sleeping(), "the end of what the tester left")


def _sleeping() -> list[int]:
    """Return the processes that the tester has left."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and b"sleep\x005001" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if not has_ended(pid)]


def test_a_run_that_was_killed_continues_in_the_sandbox_that_it_asks_for(run: Scripted) -> None:
    run.script({**story(), "analyst": [[{"hang": True}]]})
    for wanted in ("run_started", "run_resumed"):
        process = run.start("run", "--plain", **settings(run, CLEANUP_ON_EXIT="0"))
        run.until_there("*/prompts/001-analyst.md")
        eventually(partial(_has_happened, run, wanted), wanted)
        process.kill()
        process.wait()
    assert [event for event in run.journal if event["event"] == "terminal_lost"] == []
    run.script(story())
    code, said = run.call("run", "--plain", **settings(run, SANDBOX="off"))
    assert code == 0, said
    reasons = [event["reason"] for event in run.journal if event["event"] == "terminal_lost"]
    assert reasons == ["it was started with another setting of SANDBOX"] * 5


def _has_happened(run: Scripted, kind: str) -> bool:
    return any(event["event"] == kind for event in run.journal)


def test_what_makes_no_sense_is_refused_and_nothing_is_started(run: Scripted) -> None:
    programs = run.root / "bin"
    programs.mkdir()
    for name in ("tmux", "git", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    for given, told in (
        ({"PATH": str(programs)}, "SANDBOX=on: bubblewrap is not installed: bwrap is not on the PATH; install"),
        ({"SANDBOX_NETWORK": "none", "PROVIDER": "codex"}, "SANDBOX_NETWORK=none: codex needs the network to reach a"),
        ({"SANDBOX": "yes"}, "SANDBOX: found"),
        ({"SANDBOX_WRITE": "/"}, "SANDBOX_WRITE: found"),
    ):
        code, said = run.call("run", "--plain", **settings(run, **given))
        assert (code, told in said) == (1, True), said
        assert "Traceback" not in said
        assert not (run.wd / ".tmp").exists()


def test_another_server_is_refused(tmp_path: Path) -> None:
    need_bubblewrap()
    with project_in(tmp_path) as project:
        done = project.run(SANDBOX="on")
        assert done.code == 1
        assert "only Quintet's own terminal server can make a sandbox" in done.text
        assert project.stub.of("POST", "/sessions") == []
