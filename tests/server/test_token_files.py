"""The token of `quintet serve`: who gets in, where it is kept, and to whom it is never sent."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import httpx
import pytest

from quintet.api.client import ApiClient
from quintet.api.quintet_backend import backend_of
from quintet.errors import Refused, ServerError
from quintet.server.http.client import client_for
from quintet.server.http.serve import serve
from quintet.server.http.token_files import FOLDER, find_server, find_token, publish_token
from tests.eventually import eventually
from tests.stub.preloaded import COMMAND
from tests.watch.scripted import Scripted, scripted, story

TOKEN = "a-token-of-32-characters-or-more-0"


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    monkeypatch.delenv("QUINTET_TOKEN", raising=False)
    with scripted(story()) as made:
        monkeypatch.setenv("XDG_STATE_HOME", made.env["XDG_STATE_HOME"])
        yield made


def started(
    project: Scripted, *words: str, prefix: Sequence[str] = (), **settings: str
) -> tuple["subprocess.Popen[str]", str]:
    """`quintet serve` on a free port, and its address."""
    process = project.start("serve", "--port", "0", *words, prefix=prefix, **settings)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("Terminal server at "), line
    return process, line.split()[-1]


def files(project: Scripted) -> list[Path]:
    return sorted((project.root / "x" / "quintet" / FOLDER).glob("*"))


def ended(process: "subprocess.Popen[str]") -> str:
    process.terminate()
    assert process.stdout is not None
    said = process.stdout.read()  # not communicate(): it would miss what came with the first line
    process.wait(30)
    return said


def test_no_token_opens_it_with_one_line_that_says_what_that_means(project: Scripted) -> None:
    process, url = started(project, "--no-token")
    with httpx.Client(base_url=url, trust_env=False) as http:
        assert http.get("/sessions").json() == []
        assert http.get("/watch/runs").status_code == 200
    assert files(project) == []
    said = ended(process)
    assert said.splitlines() == [
        "warning: no token: every user of this machine can start programs as you through this server"
    ]


@pytest.mark.parametrize(
    ("host", "token", "words"),
    [
        ("127.0.0.1", "x", "^--no-token: QUINTET_TOKEN is set; leave one of the two out$"),
        ("0.0.0.0", "", "other machines"),  # noqa: S104
    ],
)
def test_no_token_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch, host: str, token: str, words: str) -> None:
    monkeypatch.setenv("QUINTET_TOKEN", token)
    with pytest.raises(ServerError, match=words):
        serve(host, 0, print, no_token=True)


def test_the_token_is_private_and_nowhere_else(project: Scripted) -> None:
    process, url = started(project, prefix=["env"])  # a new program, so that `ps` shows its arguments
    (path,) = files(project)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    token = json.loads(path.read_text(encoding="utf-8"))["token"]
    assert len(token) >= 32
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert token not in listed
    httpx.get(f"{url}/sessions", trust_env=False)
    said = ended(process)
    assert token not in said
    assert str(path) in said, "it says where it is"
    assert process.returncode == 128 + signal.SIGTERM
    assert files(project) == [], "it is gone with its server"


def test_several_servers_have_a_token_each(project: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, one), (_, two) = started(project), started(project)
    tokens = [find_token(url) for url in (one, two)]
    assert len(set(tokens)) == 2
    assert all(tokens)
    with httpx.Client(base_url=one, trust_env=False) as http:
        assert http.get("/health").json()["service"] == "quintet", "only this needs no token"
        for path in ("/sessions", "/watch/runs", "/watch/runs/latest", "/events?follow=false"):
            crossed, own = ({"Authorization": f"Bearer {token}"} for token in reversed(tokens))
            assert [http.get(path, headers=headers).status_code for headers in ({}, crossed)] == [401, 401], path
            assert http.get(path, headers=own).status_code != 401, path
        assert http.get("/sessions", headers=own).json() == []
    monkeypatch.setenv("QUINTET_TOKEN", "of-another-server")
    told: list[str] = []
    for url in (one, two, one.replace("127.0.0.1", "localhost")):
        backend = backend_of(client_for(url, "", told.append))
        backend.check_token()  # the token in the variable does not hide that of our own server
        backend.close()
    assert told == []
    port = one.rpartition(":")[2]
    code, said = project.call("serve", "--port", port)
    assert (code, "cannot listen" in said) == (1, True)
    assert find_token(one) == tokens[0], "a taken port leaves its owner in peace"
    ended(first)
    assert (find_token(one), find_token(two)) == ("", tokens[1])


def test_a_run_of_the_same_user_finds_it_also_after_the_server_was_killed(project: Scripted) -> None:
    project.script(story(think=0.3))
    server, url = started(project)
    run = project.start("run", "--plain", API=url, CLEANUP_ON_EXIT="1")
    journal = project.until_there("*/journal.jsonl")
    eventually(lambda: journal.read_text(encoding="utf-8").count('"prompt_sent"') > 1, "the second prompt")
    old = find_token(url)
    server.send_signal(signal.SIGKILL)
    server.wait()
    again = project.start("serve", "--port", url.rpartition(":")[2])
    said, _ = run.communicate(timeout=90)
    assert run.returncode == 0, said
    assert "401" not in said
    assert find_token(url) not in ("", old)
    ended(again)


def test_whoever_lacks_it_is_told_what_to_do(project: Scripted) -> None:
    _, url = started(project)
    other = str(project.root / "other")
    for command in (("run", "--plain"), ("doctor",)):
        code, said = project.call(*command, API=url, XDG_STATE_HOME=other)
        assert code == 1
        assert "QUINTET_TOKEN" in said
        assert "Traceback" not in said
    code, said = project.call("run", "--plain", API=url, QUINTET_TOKEN="wrong", RESUME="0")
    assert code == 1
    assert "A bearer token is needed" in said


class Eavesdropper(BaseHTTPRequestHandler):
    """A server of somebody else, at a port that was ours."""

    heard: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.heard.append(self.headers["Authorization"])
        self.send_response(401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


def test_a_killed_servers_token_is_sent_to_nobody(project: Scripted) -> None:
    server, url = started(project)
    client = client_for(url, "")
    client.health()
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert files(project), "it could not clear up"
    Eavesdropper.heard.clear()
    with ThreadingHTTPServer(("127.0.0.1", int(url.rpartition(":")[2])), Eavesdropper) as foreign:
        threading.Thread(target=foreign.serve_forever, daemon=True).start()
        for one in (client, client_for(url, "")):
            with pytest.raises(Refused):
                one.request("GET", "/terminals/deadbeef")
            one.close()
        foreign.shutdown()
    assert Eavesdropper.heard == [None, None]
    started(project)
    assert len(files(project)) == 1, "the next server clears up"


def test_the_token_in_the_variable_is_for_an_address_that_the_user_names(project: Scripted) -> None:
    """The state file names one too, and lies where agents can write."""
    process = project.start("run", "--plain")
    project.until_there("*/prompts/001-*.md")
    process.kill()
    process.wait()
    project.kill_tmux()
    state = project.wd / ".tmp" / "quintet-state.json"
    shutil.rmtree(project.root / "x/quintet/records")  # a run that nobody here knows: only its state file tells of it
    with ThreadingHTTPServer(("127.0.0.1", 0), Eavesdropper) as foreign:
        threading.Thread(target=foreign.serve_forever, daemon=True).start()
        api = f"http://127.0.0.1:{foreign.server_port}"
        state.write_text(json.dumps(json.loads(state.read_text()) | {"api": api}), encoding="utf-8")
        for given, sent in (({}, None), ({"API": api}, "Bearer a-secret")):
            Eavesdropper.heard.clear()
            settings = {"QUINTET_TOKEN": "a-secret", **given}
            said = [project.call(*words, **settings)[1] for words in (("run", "--plain"), ("stop",))]
            assert len(Eavesdropper.heard) >= 2
            assert set(Eavesdropper.heard) == {sent}
            assert [f"QUINTET_TOKEN is not sent to {api}" in text for text in said] == [not given] * 2, said
        foreign.shutdown()


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1:{port}",
        "https://127.0.0.1:{port}",
        "http://example.com:{port}",
        "http://127.0.0.1:{port}@example.com",
        "http://127.0.0.2:{port}",
        "http://127.0.0.1:1",
        "http://[::1]:{port}",
        "http://..%2f127.0.0.1:{port}",
        "http://127.0.0.1:99999999",
        "nonsense",
        "",
    ],
)
def test_it_is_for_one_address_alone(tmp_path: Path, url: str) -> None:
    with publish_token(tmp_path, "127.0.0.1", 4711, TOKEN):
        assert find_token("http://127.0.0.1:4711", tmp_path) == TOKEN
        assert find_token(url.format(port=4711), tmp_path) == ""


def test_localhost_becomes_the_servers_own_address(tmp_path: Path) -> None:
    with publish_token(tmp_path, "::1", 4711, TOKEN):
        assert find_server("http://localhost:4711/", tmp_path) == ("http://[::1]:4711/", TOKEN)
        assert find_token("http://localhost:4711", tmp_path) == "", "where that leads is not known"


def spoilt(path: Path, how: str) -> None:
    path.parent.mkdir(parents=True)
    if how == "link":
        (path.parent / "elsewhere").write_text("{}")
        path.symlink_to(path.parent / "elsewhere")
    elif how == "directory":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)


@pytest.mark.parametrize("how", ["link", "directory", "pipe"])
def test_what_is_no_file_of_ours_is_refused_in_one_line(tmp_path: Path, how: str) -> None:
    path = tmp_path / FOLDER / "127.0.0.1-4711.json"
    spoilt(path, how)
    with (
        pytest.raises(ServerError, match=r"4711\.json: .*remove it") as refused,
        publish_token(tmp_path, "127.0.0.1", 4711, TOKEN),
    ):
        pytest.fail("it was taken")
    assert "\n" not in str(refused.value)
    with pytest.raises(ServerError, match=r"4711\.json: .*remove it"):
        find_server("http://127.0.0.1:4711", tmp_path)
    assert find_token("http://127.0.0.1:4711", tmp_path) == ""


def test_a_file_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with publish_token(tmp_path, "127.0.0.1", 4711, TOKEN):
        monkeypatch.setattr("quintet.server.http.token_files.os.getuid", lambda: os.geteuid() + 1)
        with pytest.raises(ServerError, match="is not a file of yours; remove it"):
            find_server("http://127.0.0.1:4711", tmp_path)


def test_a_file_that_was_readable_by_others_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / FOLDER / "127.0.0.1-4711.json"
    path.parent.mkdir()
    path.write_text("x" * 5000)
    path.chmod(0o644)
    with publish_token(tmp_path, "127.0.0.1", 4711, TOKEN):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert find_token("http://127.0.0.1:4711", tmp_path) == TOKEN


def test_two_at_one_address_do_not_take_each_others_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.server.http.token_files.LOCK_SECONDS", 0.0)
    with publish_token(tmp_path, "127.0.0.1", 4711, TOKEN):
        with pytest.raises(ServerError, match="another server"), publish_token(tmp_path, "127.0.0.1", 4711, "b"):
            pytest.fail("it was taken")
        assert find_token("http://127.0.0.1:4711", tmp_path) == TOKEN


def test_a_refusal_for_lack_of_the_token_is_tried_again_with_a_newer_one_only() -> None:
    tokens = iter(["old", "new", "new", "new"])
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["Authorization"])
        return httpx.Response(200 if sent[-1] == "Bearer new!" else 401, json={"detail": "no"})

    client = ApiClient("http://127.0.0.1:1", "", token=lambda: next(tokens), transport=httpx.MockTransport(answer))
    with pytest.raises(Refused):
        client.request("GET", "/terminals/deadbeef")
    with pytest.raises(Refused):
        client.request("GET", "/terminals/deadbeef")
    assert sent == ["Bearer old", "Bearer new", "Bearer new"]


def test_in_a_terminal_it_shows_the_dashboards_address(project: Scripted) -> None:
    primary, secondary = os.openpty()
    environment = project.env | {"PYTHONUNBUFFERED": "1"}
    command = [*COMMAND, "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=project.wd, stdout=secondary, stderr=secondary) as process:
        os.close(secondary)
        shown = b""
        while b"keep it to yourself" not in shown:
            shown += os.read(primary, 4096)
        found = re.search(rb"The dashboard is at (http://127\.0\.0\.1:\d+)/#token=(\S+)", shown)
        assert found is not None
        assert find_token(found[1].decode()) == found[2].decode()
        process.terminate()
    os.close(primary)
