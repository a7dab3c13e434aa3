"""The control connection."""

import asyncio
import signal
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from quintet.server.tmux.connection import TmuxConnection, quote
from quintet.server.tmux.errors import CommandFailed, TmuxError
from quintet.server.tmux.servers import is_dead, is_listening, server_pid
from tests.eventually import eventually
from tests.server.rig import Rig


def connected(check: Callable[[TmuxConnection], Awaitable[None]], program: str = "exec cat") -> None:
    """Run a check on a tmux server of its own."""

    async def run(folder: Path) -> None:
        tmux = TmuxConnection(folder / "s", lambda _: None, lambda: None)
        await tmux.create("cao-x", "w", ["/bin/sh", "-c", program])
        try:
            await check(tmux)
        finally:
            await tmux.close()

    with tempfile.TemporaryDirectory(prefix="qm", dir="/tmp") as name:
        try:
            asyncio.run(run(Path(name)))
        finally:
            subprocess.run(["tmux", "-S", f"{name}/s", "kill-server"], capture_output=True, check=False, timeout=10)


def test_looking_for_a_dead_server_starts_none(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    before = path.stat()

    async def run() -> None:
        with pytest.raises(TmuxError):
            await TmuxConnection(path, lambda _: None, lambda: None).attach("cao-x")

    asyncio.run(run())
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"], "tmux locks a socket to start a server there"
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_word_is_a_word() -> None:
    async def check(tmux: TmuxConnection) -> None:
        for value in ("it's", 'a "b"', "#{pane_id}", "$HOME ~ \\", "; kill-server", "%end 1 2 1", "é😀"):
            await tmux.run(f"set-option -g @x {quote(value)}")
            assert await tmux.run("show-options -gv @x") == [value]
            nested = f"set-option -g @y {quote(value)}"
            await tmux.script(f"if-shell -F 1 {quote(nested)}")
            assert await tmux.run("show-options -gv @y") == [value]

    connected(check)


def test_a_line_is_a_line() -> None:
    with pytest.raises(ValueError, match="one line"):
        quote("a\nkill-server")


def test_replies_go_to_their_commands() -> None:
    async def check(tmux: TmuxConnection) -> None:
        async def ask(number: int) -> None:
            if number % 3 == 0:
                with pytest.raises(CommandFailed):
                    await tmux.run(f"no-such-command {number}")
            elif number % 3 == 1:
                assert await tmux.script(f"if-shell -F 1 'display-message -p a ; display-message -p {number}'") == [
                    "a",
                    str(number),
                ]
            else:
                assert await tmux.run(f"display-message -p {number}") == [str(number)]

        await asyncio.gather(*(ask(number) for number in range(300)))

    connected(check)


def test_a_screen_that_imitates_the_protocol() -> None:
    async def check(tmux: TmuxConnection) -> None:
        while "over" not in (shown := await tmux.run("capture-pane -p")):
            await asyncio.sleep(0.01)
        assert shown[:4] == ["%end 1 1 1", "%error 1 2 1", "%exit", "over"]
        assert await tmux.run("display-message -p fine") == ["fine"]

    connected(check, r"printf '%%end 1 1 1\n%%error 1 2 1\n%%exit\nover\n'; exec cat")


def test_a_failing_part_of_a_script_does_not_block_the_next_command() -> None:
    async def check(tmux: TmuxConnection) -> None:
        with pytest.raises(CommandFailed):
            await tmux.script("if-shell -F 1 'paste-buffer -b nothing ; display-message -p never'")
        assert await tmux.run("display-message -p next") == ["next"]

    connected(check)


def test_a_client_that_takes_its_time_does_not_hold_up_the_loop() -> None:
    async def check(tmux: TmuxConnection) -> None:
        process = tmux._process
        assert process is not None
        process.send_signal(signal.SIGSTOP)  # it does not even notice that its connection is closed
        closing = asyncio.get_running_loop().create_task(tmux.close())
        steps = 0
        while not closing.done():
            await asyncio.sleep(0.001)
            steps += 1
        assert steps > 5, "others had their turns while it waited"
        assert process.returncode == -signal.SIGKILL

    connected(check)


def test_commands_after_the_end(tmp_path: Path) -> None:
    async def check(tmux: TmuxConnection) -> None:
        with suppress(TmuxError):
            await tmux.run("kill-server")
        with pytest.raises(TmuxError):
            await tmux.run("display-message -p x")

    connected(check)

    async def attach() -> None:
        with pytest.raises(TmuxError):
            await TmuxConnection(tmp_path / "none", lambda _: None, lambda: None).attach("cao-x")

    asyncio.run(attach())


def test_the_process_behind_a_socket(own_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> socket.socket:
        raise ConnectionRefusedError

    own_rig.terminal()
    path = own_rig.state_folder.socket("cao-t")
    pid = server_pid(path)
    assert pid == own_rig.tmux_pid()
    with monkeypatch.context() as patch:
        patch.delattr("socket.SO_PEERCRED", raising=False)
        assert server_pid(path) == pid, "also without the credentials that Linux has"
        assert server_pid(path.with_name("nobody")) == 0
    monkeypatch.setattr("quintet.server.tmux.servers._connect", refuse)
    assert is_listening(path), "macOS refuses a connection where the queue of a socket is full"
    assert not is_dead(path)
    own_rig.tmux("kill-server")
    eventually(lambda: not is_listening(path), "the end of tmux")
