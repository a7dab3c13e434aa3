"""The scripted agent: what it does, and how it misbehaves on order."""

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintet.api.status import FailureKind, TerminalStatus
from quintet.errors import ConfigError
from quintet.providers.base import Launch, RecordedFailure, TurnRecord
from quintet.providers.editor import OWN
from quintet.providers.keyboard import Keyboard
from quintet.providers.registry import find_provider, provider_names
from quintet.providers.screen import Screen
from quintet.providers.scripted.provider import PROVIDER, RECORD
from quintet.providers.scripted.response_file import response_path
from quintet.providers.scripted.scenario import RoleScript, load_role_script
from quintet.tokens import TokenCount
from tests.server.rig import LiveServer, Rig


@pytest.fixture(scope="module")
def live_server() -> Iterator[LiveServer]:
    live = LiveServer()
    yield live
    live.close()


@pytest.fixture
def rig(live_server: LiveServer) -> Iterator[Rig]:
    rig = Rig(live_server)
    yield rig
    live_server.end_sessions()
    shutil.rmtree(rig.root)


def prompt(path: Path) -> str:
    """A prompt with the block that asks for a response file."""
    return f"Do it.\n\nRESPONSE FILE INSTRUCTION\n{path}\n\ncat > {shlex.quote(str(path))} <<'END_1'\n(text)\nEND_1\n"


def test_it_is_registered() -> None:
    assert "scripted" in provider_names()
    assert find_provider("scripted") is PROVIDER
    assert find_provider("nobody") is None


NAMES = ["answer.md", "with space.md", "it's.md", "ünï😀.md", "a/b/c.md"]


def test_it_writes_the_response_file_that_the_prompt_names(rig: Rig) -> None:
    passed = [{"reply": "RESULT: PASS"}]
    manners = [
        [{"reply": "only said", "manner": "say_only"}],
        [{"reply": "late", "manner": "late", "seconds": 0.5}],
        [{"reply": "0123456789", "manner": "pieces", "seconds": 0.5}],
        [{"reply": "x", "manner": "empty"}],
        [{"reply": "x", "manner": "twice", "seconds": 0}],
    ]
    terminal = rig.terminal([*[passed] * len(NAMES), *manners])
    for name in NAMES:
        rig.ask(terminal, prompt(rig.wd / name))
        assert (rig.wd / name).read_text(encoding="utf-8") == "RESULT: PASS\n"
    said, late, pieces, empty, twice = (rig.wd / f"{number}.md" for number in range(5))
    assert rig.ask(terminal, prompt(said)) == "only said"
    assert not said.exists()
    rig.ask(terminal, prompt(late))
    rig.eventually(late.exists, "a file that comes late")
    assert rig.status(terminal) == "completed"
    rig.send(terminal, prompt(pieces))
    rig.eventually(lambda: pieces.exists() and pieces.read_text(encoding="utf-8") == "01234", "the first piece")
    rig.until(terminal, "completed")
    assert pieces.read_text(encoding="utf-8") == "0123456789\n"
    rig.ask(terminal, prompt(empty))
    assert empty.read_bytes() == b""
    rig.ask(terminal, prompt(twice))
    assert "(Once more.)" in twice.read_text(encoding="utf-8")


def test_it_runs_commands_edits_files_and_hangs(rig: Rig) -> None:
    turn: list[dict[str, Any]] = [
        {"write": {"path": "src/a.txt", "text": "one\n"}},
        {"run": "echo two >> src/a.txt; cat src/a.txt; exit 3"},
        {"reply": "exit {exit_code}:\n{output}"},
    ]
    verdict = {"when": "pass", "then": [{"reply": "RESULT: PASS"}], "else": [{"reply": "RESULT: FAIL\n{output}"}]}
    test = [{"run": "cat flag"}, verdict]
    terminal = rig.terminal([turn, test, test, [{"say": "thinking"}, {"hang": True}]])
    assert rig.ask(terminal, "go") == "exit 3:\none\ntwo"
    assert (rig.wd / "src/a.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert rig.ask(terminal, "test it").startswith("RESULT: FAIL\ncat: "), "its verdict follows the command"
    (rig.wd / "flag").touch()
    assert rig.ask(terminal, "test it") == "RESULT: PASS"
    rig.send(terminal, "go")
    rig.until_shown(terminal, "thinking")
    assert rig.status(terminal) == "processing"


def test_a_role_without_a_part_and_a_scenario_from_the_environment(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTET_SCENARIO", rig.scenario([[{"reply": "from the environment"}]], "tester"))
    wish = {**rig.wish(profile="tester"), "args": []}
    made = rig.http.post("/sessions", params={**wish, "session_name": "t"}).json()
    assert rig.ask(made["id"], "hi") == "from the environment"
    other = rig.http.post("/sessions/t/terminals", params={**wish, "agent_profile": "programmer"}).json()
    assert rig.ask(other["id"], "hi") == "Nothing is scripted for this role."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[]", 'no object "roles"'),
        ('{"roles": {"tester": [[{"dance": 1}]]}}', "exactly one of"),
        ('{"roles": {"tester": [[{"reply": "x", "manner": "badly"}]]}}', "manner is one of"),
        ('{"roles": {"tester": [[{"when": "pass", "then": [{}]}]]}}', "exactly one of"),
        ('{"roles": {"tester": {"turns": [], "speed": 1}}}', "speed"),
    ],
)
def test_a_scenario_that_makes_no_sense(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        load_role_script(path, "tester")


def test_a_scenario_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_role_script(tmp_path / "none.json", "tester")
    assert load_role_script(None, "tester").turn(1) == [{"reply": "Done."}]
    assert RoleScript(turns=[[{"say": "a"}]]).turn(9) == [{"say": "a"}]


def test_the_path_in_a_prompt() -> None:
    assert response_path("no block here") is None
    assert response_path("cat > 'unclosed <<'X'") is None
    assert response_path("cat > a b <<'X'") is None
    assert response_path("> cat > /quoted <<'X'") is None
    assert response_path("cat > /old <<'A'\nx\nA\ncat > '/new one' <<'B'\nx\nB") == Path("/new one")


def test_pastes_in_any_pieces() -> None:
    data = "a\x1b[200~päste\n/x\x1b[201~\rb".encode()
    wanted = [("key", "a"), ("paste", "päste\n/x"), ("key", "\r"), ("key", "b")]
    for size in range(1, len(data) + 1):
        keyboard = Keyboard()
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        assert [event for piece in pieces for event in keyboard.feed(piece)] == wanted


def test_an_arrow_is_one_key_and_an_escape_waits_for_what_may_follow() -> None:
    keyboard = Keyboard()
    assert list(keyboard.feed(b"a\x1b[1;5Ab")) == [("key", "a"), ("key", "\x1b[1;5A"), ("key", "b")]
    assert list(keyboard.feed(b"\x1b")) == []
    assert keyboard.waits
    assert list(keyboard.flush()) == [("key", "\x1b")]
    assert list(keyboard.feed(b"\x1by")) == [("key", "\x1b"), ("key", "y")]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Scripted agent\n» ", TerminalStatus.IDLE),
        ("» do it\n* Working on prompt 1\n\n\n", TerminalStatus.PROCESSING),
        ("  » quoted\n* Working on prompt 1", TerminalStatus.PROCESSING),
        ("  * Working\n»" + "\n" * 25, TerminalStatus.IDLE),
        ("? Allow this? (y/n)", TerminalStatus.WAITING_USER_ANSWER),
        ("", TerminalStatus.UNKNOWN),
    ],
)
def test_its_screens(text: str, status: TerminalStatus) -> None:
    assert PROVIDER.read_screen(Screen(text)) is status


def test_only_what_is_typed_is_a_command(rig: Rig) -> None:
    terminal = rig.terminal([[{"save_prompt": "prompt"}, {"reply": "ok"}]])
    for sign in ("/exit", "!ls", "/rename it"):
        assert rig.ask(terminal, f"{sign}\nmore") == "ok"
        assert (rig.wd / "prompt").read_text(encoding="utf-8") == f"{sign}\nmore"
    rig.tmux("send-keys", "-l", "-t", "%0", "/rename typed")
    rig.tmux("send-keys", "-t", "%0", "Enter")
    rig.until_shown(terminal, "Renamed to typed")


@pytest.mark.parametrize(
    ("text", "cursor", "draft"),
    [
        ("said\n» ", (2, 1), ""),
        ("said\n» typed", (7, 1), "typed"),
        ("said\n» a placeholder", (2, 1), ""),
        ("said\n»", (4, 1), " "),
        ("said\n» one\n  two\n\n", (2, 3), "one\ntwo\n"),
        ("» said before\n* Working\n", (0, 2), ""),
        ("» said before\n------\n  footer", (3, 2), ""),
        ("» unknown", None, ""),
    ],
)
def test_a_draft_is_what_is_before_the_cursor(text: str, cursor: tuple[int, int] | None, draft: str) -> None:
    assert PROVIDER.draft(Screen(text, cursor=cursor)) == draft


def test_half_a_line_of_a_record_is_not_read(tmp_path: Path) -> None:
    (tmp_path / OWN).mkdir()
    record = tmp_path / RECORD
    assert PROVIDER.read_record(tmp_path, 0) is None
    record.write_text(json.dumps({"event": "begin"}) + '\n{"event": "en', encoding="utf-8")
    found = PROVIDER.read_record(tmp_path, 0)
    assert found is not None
    assert not found.ended
    assert PROVIDER.read_record(tmp_path, record.stat().st_size) is None


BEGUN = b'{"event": "begin", "turn": 4}\n'


@pytest.mark.parametrize("line", [b"", b"{", b"null", b"\xff", b"[" * 9000, b'{"event": []}', b'{"turn": "x"}'])
def test_a_torn_or_foreign_line_of_its_record_changes_nothing(tmp_path: Path, line: bytes) -> None:
    (tmp_path / OWN).mkdir()
    (tmp_path / RECORD).write_bytes(BEGUN + line + b"\n")
    assert PROVIDER.read_record(tmp_path, 0) == TurnRecord(ended=False)
    (tmp_path / RECORD).write_bytes(BEGUN + line)  # killed while it wrote
    launch = Launch("0a1b2c3d", "tester", "", tmp_path, tmp_path, {}, previous=tmp_path)
    assert PROVIDER.launch(launch).argv[-2:] == ("--after", "4")


def test_the_end_of_a_turn_says_no_more_than_makes_sense(tmp_path: Path) -> None:
    end = {"event": "end", "reply": 3, "failed": {"kind": "odd", "resets_at": 1e300}, "usage": {"input_tokens": -1}}
    (tmp_path / OWN).mkdir()
    (tmp_path / RECORD).write_bytes(BEGUN + json.dumps(end).encode() + b"\n")
    record = TurnRecord(True, "", RecordedFailure(FailureKind.OTHER, ""), TokenCount())
    assert PROVIDER.read_record(tmp_path, 0) == record


@pytest.mark.parametrize(
    "part",
    [None, 3, "x", {"turn": []}, {"turns": None}, {"turns": 3}, [None], ["say"], [[{"say": "x", "then": 3}]],
     [[{"when": "pass", "then": [3]}]], [[3]]],
)  # fmt: skip
def test_a_part_that_makes_no_sense_is_one_line(tmp_path: Path, part: Any) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"roles": {"tester": part}}), encoding="utf-8")
    with pytest.raises(ConfigError, match="tester") as caught:
        load_role_script(path, "tester")
    assert len(str(caught.value).splitlines()) == 1
