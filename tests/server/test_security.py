"""Attacks, each tried: access rules on the application itself, the rest on a real server."""

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
from quintet.server.http.app import create_app
from quintet.server.http.embedded import EmbeddedServer
from quintet.server.http.serve import serve
from quintet.server.state_folder import StateFolder
from tests.eventually import eventually
from tests.server.rig import Rig

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
PATHS = [
    "/health",
    "/sessions",
    "/terminals/deadbeef",
    "/terminals/deadbeef/input?message=x",
    "/events",
    "/openapi.json",
]
HOST = "127.0.0.1:4711"
URL = f"http://{HOST}"
TOKEN = "the-token"
BEARER = ("Authorization", f"Bearer {TOKEN}")
UPGRADE = [
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "eA=="),
]
Headers = list[tuple[str, str | bytes]]


def ask(method: str, path: str, *sent: Headers) -> list[httpx.Response]:
    """Return what the application answers to a request with each of these headers; it has no sessions to show."""

    async def send() -> list[httpx.Response]:
        app = create_app(lambda: pytest.fail("no session is needed"), token=TOKEN)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL) as http:
            return [await http.request(method, path, headers=headers) for headers in sent]  # type: ignore[arg-type]

    return asyncio.run(send())


@pytest.mark.parametrize("method", METHODS)
def test_foreign_hosts_and_origins_are_refused_on_every_method(method: str) -> None:
    hosts = ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1@evil.example", "", "10.0.0.1")
    origins = ("https://evil.example", "null", "http://127.0.0.1:1", URL.replace("http", "https"), URL + ".evil")
    named: list[Headers] = [[BEARER, ("Host", host)] for host in hosts]
    foreign: list[Headers] = [[BEARER, ("Origin", origin)] for origin in origins]
    foreign += [[BEARER, ("Sec-Fetch-Site", site)] for site in ("cross-site", "same-site")]
    for path in PATHS:
        for answer in ask(method, path, *named):
            assert answer.status_code == 400, (path, answer.request.headers)
        for answer in ask(method, path, *foreign):
            assert answer.status_code == 403, (path, answer.request.headers)
            assert "access-control-allow-origin" not in answer.headers


def test_the_own_origin_is_welcome() -> None:
    own: Headers = [BEARER, ("Origin", URL), ("Sec-Fetch-Site", "same-origin")]
    names: list[Headers] = [[BEARER, ("Host", name)] for name in ("localhost", "LOCALHOST:99", "[::1]:5")]
    assert [answer.status_code for answer in ask("GET", "/health", own, *names)] == [200] * 4


def test_the_token_is_needed_everywhere() -> None:
    values = ("", "Bearer", "Bearer wrong", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer tökén")
    sent: list[Headers] = [[("Authorization", value.encode("latin-1"))] for value in values]
    for path in (*PATHS, "/watch/runs", "/nowhere"):
        for answer in ask("GET", path, [], *sent):
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert "\n" not in answer.json()["detail"]
            assert "QUINTET_TOKEN" in answer.json()["detail"], "it says what to do"
    assert ask("POST", "/sessions?provider=scripted&agent_profile=tester", [])[0].status_code == 401


def test_a_web_socket_is_refused(rig: Rig) -> None:
    for path in PATHS:
        plain, foreign, wrong = ask(
            "GET",
            path,
            [BEARER, *UPGRADE],
            [BEARER, *UPGRADE, ("Origin", "https://evil.example")],
            [*UPGRADE, ("Authorization", "Bearer wrong")],
        )
        assert (plain.status_code, plain.json()) == (400, {"detail": "There is no web socket here"})
        assert (foreign.status_code, foreign.json()) == (403, {"detail": "Cross-origin request blocked"})
        assert wrong.status_code == 401
    assert rig.http.get("/events", headers=dict(UPGRADE)).status_code == 400, "the real server does the same"


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
def test_a_header_that_comes_twice_is_refused(name: str) -> None:
    good = {"Host": HOST, "Origin": URL, "Authorization": BEARER[1], "Sec-Fetch-Site": "same-origin"}
    others: Headers = [(key, value) for key, value in good.items() if key != name]
    twice = (("evil", good[name]), (good[name], "evil"), (good[name], good[name]))
    sent: list[Headers] = [[*others, *((name, value) for value in values)] for values in twice]
    codes = [answer.status_code for answer in ask("GET", "/health", *sent, [*others, (name, good[name])])]
    assert codes == [400, 400, 400, 200]


def test_a_form_of_another_page_starts_nothing(rig: Rig) -> None:
    headers = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
    answer = rig.http.post("/sessions", params=rig.wish(), headers=headers, content="{}")
    assert (answer.status_code, answer.json()) == (403, {"detail": "Cross-origin request blocked"})
    assert rig.http.get("/sessions").json() == []


NAMES = ["a:b", "a.b", "-t", "a b", "a\nb", "a/../b", "..", "", "x" * 65, "a;kill-server", "=a", "@1", "%0", "ä", "\0"]
PROFILES = ["../../etc/passwd", "programmer.md", "/etc/passwd", "a\nname: b", "-x", "x" * 65, ""]


def test_names_are_no_tmux_targets(rig: Rig) -> None:
    for name in NAMES:
        assert rig.http.post("/sessions", params={**rig.wish(), "session_name": name}).status_code == 400, name
        if name and "/" not in name and name != "..":
            assert rig.http.get(f"/sessions/{quote(name, safe='')}").status_code in (400, 404)
    for profile in PROFILES:
        assert rig.http.post("/sessions", params={**rig.wish(), "agent_profile": profile}).status_code == 400, profile
    assert rig.http.get("/sessions").json() == []


def test_nothing_secret_in_process_lists_and_files(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTET_TOKEN", "secret-token")
    monkeypatch.setenv("MY_KEY", 'it\'s "mine"\nand sk-very-secret')
    monkeypatch.setenv("TMUX", "/somewhere,1,0")
    target, (gate, wait) = rig.root / "env", rig.gate()
    terminal = rig.terminal([[wait, {"run": f"env -0 > {target}"}, {"reply": "ok"}]])
    rig.send(terminal, "the prompt that nobody may see", dispatch_id="d")
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    for secret in ("nobody may see", "sk-very-secret", rig.server.token):
        assert secret not in listed
    for path in rig.state_folder.root.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert "nobody may see" not in text
            assert "sk-very-secret" not in text
    assert "nobody may see" not in rig.tmux("list-panes", "-a", "-F", "#{@quintet}")
    assert rig.tmux("list-buffers") == ""
    gate.touch()
    rig.until(terminal, "completed")
    found = dict(line.split("=", 1) for line in target.read_text(encoding="utf-8").split("\0") if line)
    assert found["MY_KEY"] == 'it\'s "mine"\nand sk-very-secret', "the environment is handed over"
    assert found["PATH"] == os.environ["PATH"]
    assert not {"QUINTET_TOKEN", "TMUX", "TMUX_PANE"} & found.keys()
    kept = [rig.state_folder.root, *rig.state_folder.root.rglob("*")]
    assert any(stat.S_ISSOCK(path.lstat().st_mode) for path in kept)
    for path in kept:
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


def test_the_discovery_file(tmp_path: Path) -> None:
    path = tmp_path / ".tmp" / "server.json"
    with EmbeddedServer(["mine"], path, StateFolder(tmp_path / "q")) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        word = json.loads(path.read_text(encoding="utf-8"))
        assert word == {"url": server.url, "token": server.token, "pid": os.getpid(), "sessions": ["cao-mine"]}
        with httpx.Client(trust_env=False) as http:
            answer = http.get(f"{word['url']}/health", headers={"Authorization": f"Bearer {word['token']}"})
        assert answer.status_code == 200
        for _ in range(2):
            shutil.rmtree(path.parent)
            eventually(path.exists, "the discovery file, which an agent has cleaned away")
        assert json.loads(path.read_text(encoding="utf-8")) == word
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (path.parent / ".gitignore").read_text(encoding="utf-8") == "*\n", "no token gets into a commit"
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


def test_a_body_that_is_too_long(rig: Rig) -> None:
    answer = rig.http.post("/terminals/deadbeef/input", content=b"x" * (33 * 1024 * 1024))
    assert answer.status_code == 413


def test_a_value_is_not_echoed(rig: Rig) -> None:
    answer = rig.http.post("/terminals/deadbeef/input", json={"message": ["secret prompt"]})
    assert answer.status_code == 422
    assert "secret prompt" not in answer.text


def test_a_directory_is_only_a_directory(rig: Rig) -> None:
    part = [[{"run": "pwd -P > where"}, {"reply": "ok"}]]
    for path, name in (
        ("/sessions", "-c it's #{pane_id} $(touch canary) ünï😀 end;"),
        ("/sessions/t/terminals", "#(touch canary) end;"),
        ("/sessions/t/terminals", "-c it's #{pane_id} $(touch canary) ünï😀 end;"),
    ):
        folder = rig.wd / name
        folder.mkdir(exist_ok=True)
        wish = {**rig.wish(part), "session_name": "t", "working_directory": str(folder)}
        made = rig.http.post(path, params=wish).json()
        rig.ask(made["id"], "go")
        assert (folder / "where").read_text(encoding="utf-8") == f"{folder}\n"
        (folder / "where").unlink()
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
