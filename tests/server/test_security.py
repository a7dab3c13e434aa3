"""Attacks, each tried."""

import asyncio
import json
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from quintet.errors import ServerError
from quintet.server.http.access import AccessGuard
from quintet.server.http.embedded import EmbeddedServer
from quintet.server.http.serve import serve
from quintet.server.state_folder import StateFolder
from tests.server.rig import Rig, until

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
PATHS = [
    "/health",
    "/sessions",
    "/terminals/deadbeef",
    "/terminals/deadbeef/input?message=x",
    "/events",
    "/openapi.json",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", METHODS)
def test_foreign_hosts_and_origins_are_refused_on_every_method(rig: Rig, method: str, path: str) -> None:
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1@evil.example", "", "10.0.0.1"):
        assert rig.http.request(method, path, headers={"Host": host}).status_code == 400, host
    own = rig.server.url
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", own.replace("http", "https"), own + ".evil"):
        answer = rig.http.request(method, path, headers={"Origin": origin})
        assert answer.status_code == 403, origin
        assert "access-control-allow-origin" not in answer.headers
    for site in ("cross-site", "same-site"):
        assert rig.http.request(method, path, headers={"Sec-Fetch-Site": site}).status_code == 403


def test_the_own_origin_is_welcome(rig: Rig) -> None:
    headers = {"Origin": rig.server.url, "Sec-Fetch-Site": "same-origin"}
    assert rig.http.get("/health", headers=headers).status_code == 200
    for name in ("localhost", "LOCALHOST:99", "[::1]:5"):
        assert rig.http.get("/health", headers={"Host": name}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_the_token_is_needed_everywhere(rig: Rig, path: str) -> None:
    for value in (None, "", "Bearer", "Bearer wrong", f"Basic {rig.server.token}", "Bearer tökén"):
        headers = [(b"Authorization", value.encode("latin-1"))] if value is not None else []
        with httpx.Client(base_url=rig.server.url, trust_env=False) as http:
            answer = http.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_form_of_another_page_starts_nothing(rig: Rig) -> None:
    headers = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
    answer = rig.http.post("/sessions", params=rig.wish(), headers=headers, content="{}")
    assert (answer.status_code, answer.json()) == (403, {"detail": "Cross-origin request blocked"})
    assert rig.http.get("/sessions").json() == []


def test_a_web_socket_is_refused(rig: Rig) -> None:
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "eA==",
    }
    for path in PATHS:
        answer = rig.http.get(path, headers=headers)
        assert (answer.status_code, answer.json()) == (400, {"detail": "There is no web socket here"})
        answer = rig.http.get(path, headers={**headers, "Origin": "https://evil.example"})
        assert (answer.status_code, answer.json()) == (403, {"detail": "Cross-origin request blocked"})
        answer = rig.http.get(path, headers={**headers, "Authorization": "Bearer wrong"})
        assert answer.status_code == 401


def test_a_web_socket_of_a_server_that_knows_them_is_closed() -> None:
    sent: list[dict[str, Any]] = []

    async def app(*_: object) -> None:
        raise AssertionError("nothing gets through")

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/events", "headers": [(b"host", b"127.0.0.1")]}
    asyncio.run(AccessGuard(app)(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Sec-Fetch-Site"])
def test_a_header_that_comes_twice_is_refused(rig: Rig, name: str) -> None:
    host = rig.server.url.removeprefix("http://")
    good = {
        "Host": host,
        "Origin": rig.server.url,
        "Authorization": f"Bearer {rig.server.token}",
        "Sec-Fetch-Site": "same-origin",
    }
    others = [f"{key}: {value}" for key, value in good.items() if key != name]
    for values in (("evil", good[name]), (good[name], "evil"), (good[name], good[name])):
        twice = [f"{name}: {value}" for value in values]
        assert _spoken(host, ["GET /health HTTP/1.1", *others, *twice]) == 400
    assert _spoken(host, ["GET /health HTTP/1.1", *(f"{key}: {value}" for key, value in good.items())]) == 200


def _spoken(host: str, lines: list[str]) -> int:
    """The answer's status to a request as it is written."""
    address, port = host.split(":")
    with socket.create_connection((address, int(port)), timeout=10) as wire:
        wire.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(wire.recv(1 << 16).split(b" ", 2)[1])


NAMES = [
    "a:b",
    "a.b",
    "-t",
    "a b",
    "a\nb",
    "a/../b",
    "..",
    "",
    "x" * 65,
    "a;kill-server",
    "=a",
    "@1",
    "%0",
    "ä",
    "a\x00",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_no_tmux_targets(rig: Rig, name: str) -> None:
    assert rig.http.post("/sessions", params={**rig.wish(), "session_name": name}).status_code == 400
    if name and "/" not in name and name != "..":
        assert rig.http.get(f"/sessions/{quote(name, safe='')}").status_code in (400, 404)
    assert rig.http.get("/sessions").json() == []


@pytest.mark.parametrize(
    "profile", ["../../etc/passwd", "programmer.md", "/etc/passwd", "a\nname: b", "-x", "x" * 65, ""]
)
def test_profile_names_are_no_paths(rig: Rig, profile: str) -> None:
    answer = rig.http.post("/sessions", params={**rig.wish(), "agent_profile": profile})
    assert answer.status_code == 400


def test_the_environment_is_handed_over_but_for_the_token(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTET_TOKEN", "secret-token")
    monkeypatch.setenv("MY_KEY", 'it\'s "mine"\nand $HOME')
    monkeypatch.setenv("TMUX", "/somewhere,1,0")
    target = rig.root / "env"
    terminal = rig.terminal([[{"run": f"env -0 > {target}"}, {"reply": "ok"}]])
    rig.ask(terminal, "go")
    found = dict(line.split("=", 1) for line in target.read_text(encoding="utf-8").split("\0") if line)
    assert found["MY_KEY"] == 'it\'s "mine"\nand $HOME'
    assert found["PATH"] == os.environ["PATH"]
    assert "QUINTET_TOKEN" not in found
    assert "TMUX" not in found
    assert "TMUX_PANE" not in found


def test_nothing_secret_in_process_lists_and_files(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret")
    gate = rig.root / "gate"
    terminal = rig.terminal([[{"run": f"while ! test -e {gate}; do sleep 0.01; done"}, {"reply": "ok"}]])
    rig.send(terminal, "the prompt that nobody may see", dispatch_id="d")
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    for secret in ("nobody may see", "sk-very-secret", rig.server.token):
        assert secret not in listed
    for path in rig.state_folder.root.rglob("*"):
        if path.is_file():
            assert "nobody may see" not in path.read_text(encoding="utf-8", errors="replace")
            assert "sk-very-secret" not in path.read_text(encoding="utf-8", errors="replace")
    assert "nobody may see" not in rig.tmux("list-panes", "-a", "-F", "#{@quintet}")
    assert rig.tmux("list-buffers") == ""
    gate.touch()
    rig.until(terminal, "completed")


def test_files_and_sockets_are_private(rig: Rig) -> None:
    terminal = rig.terminal()
    rig.ask(terminal, "hello")
    found = [rig.state_folder.root, *rig.state_folder.root.rglob("*")]
    assert any(stat.S_ISSOCK(path.lstat().st_mode) for path in found)
    for path in found:
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            assert stat.S_IMODE(mode) == 0o700, path
        else:
            assert stat.S_ISSOCK(mode) or stat.S_IMODE(mode) & 0o077 == 0, path


def test_a_directory_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "q").symlink_to(tmp_path / "real")
    with pytest.raises(ServerError, match="not a directory of yours"):
        StateFolder(tmp_path / "q")


def test_the_discovery_file(tmp_path: Path, rig: Rig) -> None:
    path = tmp_path / ".tmp" / "server.json"
    with EmbeddedServer(["mine"], path, rig.state_folder) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        word = json.loads(path.read_text(encoding="utf-8"))
        assert word == {"url": server.url, "token": server.token, "pid": os.getpid(), "sessions": ["cao-mine"]}
        with httpx.Client(trust_env=False) as http:
            answer = http.get(f"{word['url']}/health", headers={"Authorization": f"Bearer {word['token']}"})
        assert answer.status_code == 200
    assert not path.exists()


@pytest.mark.parametrize("token", [None, "", "  ", "\n"])
def test_other_machines_only_with_a_token(monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    monkeypatch.delenv("QUINTET_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("QUINTET_TOKEN", token)
    monkeypatch.setattr("quintet.server.http.serve.bind", lambda *_: pytest.fail("it listens"))
    for host in ("0.0.0.0", "::", "192.0.2.1", "my-host"):  # noqa: S104
        with pytest.raises(ServerError, match="QUINTET_TOKEN"):
            serve(host, 0, print)


def test_blanks_around_the_token_are_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("QUINTET_TOKEN", " s3cret\n")
    used: list[str] = []
    monkeypatch.setattr("quintet.server.http.serve.create_app", lambda *_, token, **__: used.append(token))
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ServerError, match="cannot listen"):
        serve("127.0.0.1", taken.getsockname()[1], print)
    assert used == ["s3cret"]


def test_a_discovery_file_that_an_agent_cleans_away_comes_back(tmp_path: Path, rig: Rig) -> None:
    path = tmp_path / ".tmp" / "server.json"
    with EmbeddedServer(["mine"], path, rig.state_folder) as server:
        for _ in range(2):
            shutil.rmtree(path.parent)
            until(path.exists, bool)
        assert json.loads(path.read_text(encoding="utf-8"))["url"] == server.url
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (path.parent / ".gitignore").read_text(encoding="utf-8") == "*\n", "no token gets into a commit"
    assert not path.exists()


def test_a_taken_port_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ServerError, match="cannot listen"):
        serve("127.0.0.1", taken.getsockname()[1], print)


def test_a_body_that_is_too_long(rig: Rig) -> None:
    terminal = rig.terminal()
    answer = rig.http.post(f"/terminals/{terminal}/input", content=b"x" * (33 * 1024 * 1024))
    assert answer.status_code == 413


def test_a_value_is_not_echoed(rig: Rig) -> None:
    answer = rig.http.post("/terminals/deadbeef/input", json={"message": ["secret prompt"]})
    assert answer.status_code == 422
    assert "secret prompt" not in answer.text


@pytest.mark.parametrize(
    "name", ["with space", "it's", "end;", "#(touch canary)", "#{pane_id}", "ünï😀", "$(touch canary)", "-c"]
)
def test_a_directory_is_only_a_directory(rig: Rig, name: str) -> None:
    folder = rig.wd / name
    folder.mkdir()
    part = [[{"run": "pwd -P > where"}, {"reply": "ok"}]]
    for path in ("/sessions", "/sessions/t/terminals"):
        wish = {**rig.wish(part), "session_name": "t", "working_directory": str(folder)}
        made = rig.http.post(path, params=wish).json()
        rig.ask(made["id"], "go")
        assert (folder / "where").read_text(encoding="utf-8") == f"{folder}\n"
        answer = rig.http.get(f"/terminals/{made['id']}/working-directory").json()
        assert answer["working_directory"] == str(folder)
    assert not list(rig.root.rglob("canary"))


def test_a_length_of_thousands_of_digits_is_too_long() -> None:
    async def unreached(*_: Any) -> Any:
        raise AssertionError

    answers: list[Any] = []

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"host", b"localhost"), (b"content-length", b"9" * 5000)]
    scope = {"type": "http", "method": "POST", "path": "/sessions", "headers": headers}
    asyncio.run(AccessGuard(unreached)(scope, unreached, send))
    assert answers[0]["status"] == 413
