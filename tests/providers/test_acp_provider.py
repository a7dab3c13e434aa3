"""What the server asks of an agent of the protocol: its status by the host's title, its turns by the host's record."""

import json
from pathlib import Path

import pytest

from quintet.api.status import FailureKind, TerminalStatus
from quintet.providers.acp.agents import ACP_AGENTS, GEMINI, OPENCODE, own_agent
from quintet.providers.acp.host_settings import FILE, RECORD, HostSettings
from quintet.providers.acp.provider import AcpProvider
from quintet.providers.base import Login
from quintet.providers.editor import OWN
from quintet.providers.registry import find_provider, provider_of_terminal
from quintet.providers.screen import Screen

PROVIDER = AcpProvider(GEMINI)


@pytest.mark.parametrize(
    ("title", "status"),
    [
        ("quintet acp ready · tester", TerminalStatus.IDLE),
        ("quintet acp working · tester", TerminalStatus.PROCESSING),
        ("quintet acp asks · tester", TerminalStatus.WAITING_USER_ANSWER),
        ("quintet acp starting · tester", TerminalStatus.UNKNOWN),
        ("quintet acp readyish", TerminalStatus.UNKNOWN),
        ("a host's name", TerminalStatus.UNKNOWN),
        ("x quintet acp ready", TerminalStatus.UNKNOWN),
        ("", TerminalStatus.UNKNOWN),
    ],
)
def test_the_title_tells_the_status_and_no_word_on_the_screen(title: str, status: TerminalStatus) -> None:
    for text in ("", "› ", "quintet acp ready · tester\nWorking ..."):
        assert PROVIDER.read_screen(Screen(text, title)) is status


def test_every_question_is_a_permission() -> None:
    assert PROVIDER.is_permission(Screen("", "quintet acp asks · tester"))
    assert not PROVIDER.is_permission(Screen("", "quintet acp ready · tester"))


def test_a_record_is_read_from_a_position(tmp_path: Path) -> None:
    assert not PROVIDER.has_record(tmp_path)
    assert PROVIDER.read_record(tmp_path, 0) is None
    events: list[dict[str, object]] = [
        {"event": "session", "id": "s"},
        {"event": "begin", "turn": 1},
        {"event": "end", "turn": 1, "reply": "one", "usage": {"input_tokens": 5, "output_tokens": 2}},
    ]
    (tmp_path / OWN).mkdir(exist_ok=True)
    (tmp_path / RECORD).write_text("".join(json.dumps(event) + "\n" for event in events))
    first = PROVIDER.read_record(tmp_path, 0)
    assert first is not None
    assert first.usage is not None
    assert (first.ended, first.last_message, first.usage.total) == (True, "one", 7)
    since = PROVIDER.record_position(tmp_path)
    assert PROVIDER.read_record(tmp_path, since) is None
    failed = {"kind": FailureKind.LOGIN, "text": "401"}
    with (tmp_path / RECORD).open("a") as record:
        record.write('{"event":"begin"}\n{"event":"note","text":"slow"}\n')
        record.flush()
        running = PROVIDER.read_record(tmp_path, since)
        record.write(json.dumps({"event": "end", "reply": "", "failed": failed}) + "\n" + '{"event":"beg')
    assert running is not None
    assert (running.ended, running.note) == (False, "slow")
    ended = PROVIDER.read_record(tmp_path, since)
    assert ended is not None
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.LOGIN


@pytest.mark.parametrize(("loaded", "goes_on"), [([], False), ([False], False), ([True], True), ([True, False], False)])
def test_whether_a_conversation_has_gone_on(loaded: list[bool], goes_on: bool, tmp_path: Path) -> None:
    told = [json.dumps({"event": "session", "id": "s", "loaded": one}) + "\n" for one in loaded]
    (tmp_path / OWN).mkdir(exist_ok=True)
    (tmp_path / RECORD).write_text("".join(told))
    assert PROVIDER.has_continued(tmp_path) is goes_on


def test_a_login_that_nobody_can_see_is_no_missing_one(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert AcpProvider(own_agent("mine", command=["x"], env={})).login("x", env) is Login.UNKNOWN
    assert PROVIDER.login("x", env) is Login.NOT_SEEN
    assert PROVIDER.login("x", env | {"GEMINI_API_KEY": "k"}) is Login.FOUND


def test_a_login_is_looked_for_where_the_user_has_put_the_folder(tmp_path: Path) -> None:
    opencode = AcpProvider(OPENCODE)
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert opencode.login("x", env) is Login.NOT_SEEN
    (tmp_path / "data/opencode").mkdir(parents=True)
    (tmp_path / "data/opencode/auth.json").touch()
    assert opencode.login("x", env) is Login.FOUND


def test_names_are_those_of_the_rows_and_of_a_terminals_own_host(tmp_path: Path) -> None:
    assert {agent.name for agent in ACP_AGENTS if isinstance(find_provider(agent.name), AcpProvider)} == {
        agent.name for agent in ACP_AGENTS
    }
    assert provider_of_terminal("mine", tmp_path) is None
    for text in ("{", "[]", "{}", '{"name": 1, "command": 2}'):
        (tmp_path / FILE).write_text(text)
        assert provider_of_terminal("mine", tmp_path) is None
    (tmp_path / FILE).write_text(HostSettings("mine", ("x", "acp")).to_json())
    found = provider_of_terminal("mine", tmp_path)
    assert found is not None
    assert found.name == "mine"
    gemini = provider_of_terminal("gemini_cli", tmp_path)
    assert gemini is not None
    assert gemini.registration is GEMINI
