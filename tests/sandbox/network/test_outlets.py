"""The way from a sandbox to the proxy outside, with real bubblewrap."""

import os
import pty
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from quintet.sandbox.network.forwarder import proxy_variables
from quintet.sandbox.network.outlets import Outlets, network_mounts
from tests.eventually import eventually
from tests.sandbox.network.inside import fetch, inside
from tests.sandbox.network.servers import read_head, serving


def test_a_program_reaches_allowed_servers_as_it_is_used_to(tmp_path: Path) -> None:
    """A server of this machine directly, at its own port; a named host by the proxy's variables."""
    with serving() as port, inside(tmp_path, f"127.0.0.1:{port}", f"localhost:{port}") as made:
        assert "Host: 127.0.0.1" in made.python(fetch(f"http://127.0.0.1:{port}/"))
        by_proxy = f"import os; os.environ['no_proxy'] = ''\n{fetch(f'http://localhost:{port}/')}"
        assert "Host: localhost" in made.python(by_proxy)
        assert made.refused == {}


def test_variables_lead_to_the_proxy(tmp_path: Path) -> None:
    with inside(tmp_path, "a.test") as made:
        said = dict(line.split("=", 1) for line in made.run("env").stdout.splitlines())
        port = int(said["HTTP_PROXY"].rpartition(":")[2])
        assert {name: said[name] for name in proxy_variables(port)} == proxy_variables(port)


def test_a_program_keeps_its_exit_code_its_signals_and_its_words(tmp_path: Path) -> None:
    with inside(tmp_path, "a.test") as made:
        assert made.run("sh", "-c", "exit 7").returncode == 7
        assert made.run("sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
        assert made.run("printf", "%s|", "a b", "--", "$x").stdout == "a b|--|$x|"
        missing = made.run("no-such-program")
        assert missing.returncode
        assert missing.stderr == "no-such-program: No such file or directory\n"


def test_a_program_keeps_its_terminal(tmp_path: Path) -> None:
    """Its process group is the one that gets what is typed, so that an interrupt reaches it and not the forwarder."""
    ours, theirs = pty.openpty()
    show = "import os; print(os.tcgetpgrp(0) == os.getpgrp(), os.isatty(1), flush=True); input()"
    with inside(tmp_path, "a.test") as made:
        command = [sys.executable, "-c", "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"]
        words = [*command, *made.command("python3", "-c", show)]
        with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            seen = b""
            while b"\n" not in seen:
                seen += os.read(ours, 100)
            assert seen.strip() == b"True True"
            os.write(ours, b"\x03")
            try:
                assert process.wait(30)
            finally:
                process.kill()
        os.close(ours)


def test_nothing_is_left_when_the_program_has_ended(tmp_path: Path) -> None:
    with inside(tmp_path, "a.test") as made:
        mark = str(tmp_path / "outlet")
        assert made.run("true").returncode == 0

        def left() -> list[str]:
            listing = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
            return [line for line in listing.splitlines() if mark in line and "bwrap" in line]

        eventually(left, wanted=lambda lines: not lines)
    assert list(tmp_path.iterdir()) == []


def test_a_connection_can_be_silent_for_long_and_an_answer_comes_as_it_is_written(tmp_path: Path) -> None:
    """Each side writes only when it has heard the other: nothing on the way may wait for more."""

    def echo(connection: socket.socket) -> None:
        while data := connection.recv(100):
            connection.sendall(data.upper())

    with serving(echo) as port, inside(tmp_path, f"127.0.0.1:{port}") as made:
        code = (
            f"import socket; made = socket.create_connection(('127.0.0.1', {port}))\n"
            "for word in (b'one', b'two', b'three'): made.sendall(word); print(made.recv(100).decode())\n"
            "made.shutdown(socket.SHUT_WR); print(made.recv(100) == b'')"
        )
        assert made.python(code).split() == ["ONE", "TWO", "THREE", "True"]


def test_a_later_server_opens_the_gate_again(tmp_path: Path) -> None:
    """A run was killed and continues: its sandboxes live, and reach the new proxy at the same place."""
    first, later, folder = Outlets(), Outlets(), tmp_path / "terminal.outlet"
    with serving() as port:
        first.open(folder, [f"127.0.0.1:{port}"])
        first.stop()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        later.reopen(folder)
        later.reopen(folder)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(folder / "proxy"))
            connection.sendall(b"CONNECT evil.test:1 HTTP/1.1\r\n\r\n")
            assert read_head(connection).startswith(b"HTTP/1.1 403 ")
        assert [one.host for one in later.refused(folder)] == ["evil.test"]
        later.close(folder)
        later.stop()
        assert list(tmp_path.iterdir()) == []


def test_a_gate_that_was_never_made_is_not_opened(tmp_path: Path) -> None:
    outlets = Outlets()
    outlets.reopen(tmp_path / "none.outlet")
    (tmp_path / "bad.outlet.json").write_text('["*"]')
    outlets.reopen(tmp_path / "bad.outlet")
    assert outlets.refused(tmp_path / "bad.outlet") == []
    outlets.stop()


def test_a_socket_can_be_in_a_folder_with_a_long_name(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with serving() as port, inside(folder, f"127.0.0.1:{port}") as made:
        assert "Host:" in made.python(fetch(f"http://127.0.0.1:{port}/"))


def test_all_of_the_network_needs_no_gate(tmp_path: Path) -> None:
    assert network_mounts("keep") == []
    with serving() as port, inside(tmp_path, network="keep") as made:
        assert made.outlet is None
        assert "Host:" in made.python(fetch(f"http://127.0.0.1:{port}/"))


@pytest.mark.parametrize("network", ["none", "allow"])
def test_the_sockets_of_services_are_covered(tmp_path: Path, network: str) -> None:
    with inside(tmp_path, network=network) as made:
        listed = made.run("sh", "-c", "ls /run").stdout.split()
        assert listed == (["quintet"] if network == "allow" else [])
