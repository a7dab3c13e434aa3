"""A terminal in a sandbox of the real bubblewrap: what its program can read, write and end."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from quintet.processes import has_ended
from quintet.sandbox.private_git import make_private_git
from tests.sandbox.boxed import Boxed
from tests.sandbox.need import need_bubblewrap
from tests.server.rig import Rig


@pytest.fixture
def boxed(rig: Rig) -> Boxed:
    need_bubblewrap()
    return Boxed(rig)


def test_only_what_the_work_needs_can_be_written(boxed: Boxed) -> None:
    more = boxed.rig.root / "more"
    more.mkdir()
    allowed = (
        "echo 1 > made.txt",
        "git config user.name >/dev/null; git -c user.name=A -c user.email=a@b commit --allow-empty -qm one",
        "echo 1 > .tmp/agent-responses/answer.md",
        "echo 1 > /tmp/own && echo 1 > /var/tmp/own2 && test $TMPDIR = /tmp",
        "echo 1 > ~/.cache/some && echo 1 > ~/new.txt && echo 1 > ~/notes.txt",
        f"echo 1 > {more}/some",
    )
    private = boxed.rig.root / "private"
    make_private_git(boxed.rig.wd, private)
    done = boxed.run(*allowed, write=[str(more)], git=str(private), caches=str(boxed.rig.root / "caches"))
    assert [said.split(":")[0] for said in done] == ["0"] * len(allowed)
    assert (boxed.rig.wd / "made.txt").exists()
    assert (boxed.tmp / "agent-responses" / "answer.md").exists(), "the role's own folder is its .tmp"
    assert not Path("/tmp/own").exists()
    assert not Path("/var/tmp/own2").exists()
    assert list(more.iterdir())

    refused = (
        f"echo 1 > {boxed.rig.root}/beside.txt && cat {boxed.rig.root}/beside.txt && false",
        "echo 1 > /etc/made-by-an-agent",
        "git config core.fsmonitor 'touch pwned'",
        "echo 1 > .git/hooks/pre-commit",
        "mount -o remount,rw /",
        "umount .tmp",
    )
    assert boxed.fails(*refused, session="u") == {}
    assert (boxed.home / "notes.txt").read_text() == "the notes", "it has written in a home of its own"
    assert not (boxed.home / "new.txt").exists()
    assert (boxed.rig.root / "caches" / ".cache" / "some").exists()
    assert not (boxed.rig.root / "beside.txt").exists()


def test_secrets_and_the_servers_own_files_cannot_be_seen(boxed: Boxed) -> None:
    state = boxed.rig.state_folder
    refused = (
        "cat ~/.ssh/id_ed25519",
        "cat ~/.netrc | grep .",
        "cat ~/.codex/auth.json",
        "cat .tmp/server.json",
        f"ls {state.sockets}",
        f"tmux -S {state.socket('cao-t')} list-panes -a",
        f"ls {boxed.rig.root}/x.json",
        f"ls {os.environ['XDG_STATE_HOME']}/quintet/records",
        "cat .env",
    )
    for path in (Path(os.environ["XDG_STATE_HOME"]) / "quintet" / "records", boxed.rig.wd / ".tmp"):
        path.mkdir(parents=True)
    (boxed.rig.wd / ".tmp" / "server.json").write_text("the token")
    (boxed.rig.wd / ".env").mkdir()
    assert boxed.fails(*refused, hide=[".env/../.env"]) == {}
    shown = boxed.run("cat ~/.ssh/id_ed25519", "cat ~/notes.txt", session="u", show=["~/.ssh", "~/notes.txt"])
    assert shown == ["0: the key", "0: the notes"]
    real = boxed.rig.root / "real-home"
    boxed.home.rename(real)
    boxed.home.symlink_to(real)
    linked = ("cat ~/.ssh/id_ed25519", f"cat {real}/.ssh/id_ed25519")
    assert boxed.fails(*linked, session="v") == {}, "a home that is a link is the same"


def test_no_process_and_no_network_outside_can_be_reached(boxed: Boxed) -> None:
    port = boxed.rig.server.url.rpartition(":")[2]
    reach = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"
    outside = subprocess.Popen(["sleep", "3001"])
    try:
        refused = (f"kill {outside.pid}", f"ls /proc/{os.getpid()}/status", "pgrep -x sleep", reach)
        assert boxed.fails(*refused, network="none") == {}
        assert outside.poll() is None
    finally:
        outside.kill()
        outside.wait()
    said = boxed.run(
        reach,
        "python3 -c 'import pty; print(pty.spawn([\"true\"]))'",
        "bash -c 'set -m; sleep 100 & jobs; kill %1' | grep Running",
        "tmux -L q new-session -d 'sleep 100' && tmux -L q kill-server",
        session="u",
    )
    assert [one.split(":")[0] for one in said] == ["0"] * 4, "but the network unless it is taken away, jobs and a pty"


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def has_sleep(processes: list[psutil.Process]) -> bool:
    return any(process.name() == "sleep" for process in processes)


LOOSE = "setsid sh -c 'sleep 3002' </dev/null >/dev/null 2>&1 &"


@pytest.mark.parametrize("way", ["kill-pane", "kill-server", "exit"])
def test_everything_inside_ends_with_the_terminal(boxed: Boxed, way: str) -> None:
    rig = boxed.rig
    terminal = boxed.terminal([LOOSE, [{"exit": 3}]])
    rig.ask(terminal, "go")
    inside = rig.eventually(lambda: below(rig.pane_pid(terminal)), "a sleep", has_sleep)
    match way:
        case "exit":
            rig.send(terminal, "go")
            assert rig.until(terminal, "error")["reason"] == "its program has exited with code 3"
        case _:
            rig.tmux(way)
    rig.eventually(lambda: all(has_ended(one.pid) for one in inside), "the end of everything inside")


def test_what_a_turn_leaves_running_is_found_in_a_sandbox_too(boxed: Boxed) -> None:
    rig = boxed.rig
    terminal = boxed.terminal([LOOSE])
    rig.send(terminal, "go", dispatch_id="one")
    rig.until(terminal, "completed")
    pid = rig.pane_pid(terminal)
    rig.eventually(lambda: has_sleep(below(pid)), "the process that the turn left")
    ended = rig.http.post("/sessions/cao-t/strays").json()["ended"]
    assert ["sleep 3002" in command for command in ended[terminal]].count(True) >= 1
    assert rig.status(terminal) == "completed", "the agent and its sandbox go on"
    assert not has_sleep(below(pid))
    assert rig.http.post("/sessions/cao-t/strays").json()["ended"] == {}


def test_a_terminal_tells_of_its_sandbox_also_after_a_restart(own_rig: Rig) -> None:
    need_bubblewrap()
    boxed = Boxed(own_rig)
    terminal = boxed.terminal(["true"])
    assert own_rig.get(terminal)["sandbox"] == str(boxed.tmp)
    own_rig.restart()
    assert own_rig.get(terminal)["sandbox"] == str(boxed.tmp)
    assert own_rig.get(own_rig.terminal(session="u"))["sandbox"] is None


def test_a_sandbox_that_makes_no_sense_is_refused(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(told: str, **sandbox: Any) -> None:
        answer = boxed.rig.http.post("/sessions", params=boxed.rig.wish(), json={"sandbox": sandbox})
        assert (answer.status_code, told in answer.json()["detail"]) == (400, True), answer.text
        assert boxed.rig.state_folder.session_names() == []

    check("tmp", tmp="relative")
    check("exist", tmp="/does/not/exist")
    check("control", tmp="/", write=["a\nb"])
    monkeypatch.setenv("PATH", str(boxed.home))
    check("bubblewrap is not installed", tmp=str(boxed.tmp))


def test_a_terminal_that_continues_another_has_its_home(boxed: Boxed) -> None:
    rig = boxed.rig
    lost = boxed.terminal(["echo mine > ~/kept.txt; rm -rf ~/.local; ln -s / ~/.local", "cat ~/kept.txt"])
    rig.ask(lost, "go")
    os.kill(rig.pane_pid(lost), signal.SIGKILL)
    rig.until(lost, "error")
    params = {**rig.wish([[{"reply": "-"}], [{"run": "cat ~/kept.txt"}, {"reply": "{output}"}]]), "continues": lost}
    body = {"env_vars": {"HOME": str(boxed.home)}, "sandbox": {"tmp": str(boxed.tmp)}}
    answer = rig.http.post("/sessions/t/terminals", params=params, json=body)
    assert answer.status_code == 201, answer.text
    terminal = answer.json()["id"]
    rig.until(terminal, "idle")
    assert rig.ask(terminal, "go") == "mine"
