"""What the agents' own records say they did in a turn: recorded ones of real releases, and odd ones."""

import json
import shutil
import time
from dataclasses import asdict
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from quintet.actions import LONGEST, MOST, Action, ActionKind, ActionLog, TurnActions, action, bounded, shorten
from quintet.providers.base import Provider
from quintet.providers.claude_code import actions as claude
from quintet.providers.claude_code.launch import HOOKS_FILE
from quintet.providers.claude_code.provider import PROVIDER as CLAUDE
from quintet.providers.codex import actions as codex
from quintet.providers.codex.launch import NOTES, Notes
from quintet.providers.codex.provider import PROVIDER as CODEX
from quintet.providers.codex.rollouts import mark
from quintet.providers.editor import OWN
from quintet.providers.scripted.provider import PROVIDER as SCRIPTED
from quintet.providers.scripted.provider import RECORD

RECORDS = Path(__file__).parent / "records"
COMMAND, READ = ActionKind.COMMAND, ActionKind.READ
Told = tuple[str, str, int | None]


def told(actions: TurnActions | None) -> list[Told]:
    assert actions is not None
    return [(one.kind.value, one.text, one.exit_code) for one in actions.items]


def turns_of_codex(name: str) -> list[list[Told]]:
    """What is told at the end of each turn of a recorded rollout."""
    calls, ends = codex.RolloutCalls(), []
    for line in (RECORDS / name).read_bytes().splitlines():
        calls = codex.read_call(calls, 0, line)
        if b'"task_complete"' in line:
            ends.append(told(calls.log.actions))
    return ends


@pytest.mark.parametrize("release", ["0.149.0", "0.166.0"])
def test_a_recorded_rollout_of_codex(release: str) -> None:
    first, second, third = turns_of_codex(f"codex-{release}.jsonl")
    assert first == [
        ("command", "cat README.md", 0),
        ("command", "exit 3", 3),
        ("command", "printf '\\033[31mred\\033[0m\\n'; ls nothing_here", 2),
    ]
    (readme, hello), rest = sorted(second[:2]), second[2:]
    assert (readme[0], Path(readme[1]).name) == ("change", "README.md")
    assert (hello[0], Path(hello[1]).name) == ("change", "hello.txt")
    # it ends only in the next turn; what Codex did not know or could not do is not there
    assert rest == [("command", "sleep 2; exit 6", None), ("tool", "spawn_agent", None)]
    assert third == [], "nothing was done, which is another thing than that nothing is known"


def codex_lines(*payloads: dict[str, Any], kind: str = "response_item") -> TurnActions:
    begin = {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "t1"}}
    entries = [begin, *({"type": payload.pop("as", kind), "payload": payload} for payload in payloads)]
    lines = [json.dumps(entry).encode() for entry in entries]
    return reduce(lambda calls, line: codex.read_call(calls, 0, line), lines, codex.RolloutCalls()).log.actions


def called(name: str, call: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "call_id": call, "arguments": json.dumps(arguments)}


def answered(output: Any, call: str = "c1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": output}


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ('{"output":"Exit code: 0","metadata":{"exit_code":9,"duration_seconds":0.1}}', 9),
        ("Exit code: 4\nWall time: 1 seconds\nOutput:\nExit code: 0\n", 4),
        ("Wall time: 1 seconds\nOutput:\nProcess exited with code 0\n", None),
        ("a form that nobody knows yet", None),
    ],
)
def test_exit_codes_in_the_forms_of_older_releases(output: str, code: int | None) -> None:
    done = codex_lines(called("shell", command=["bash", "-lc", "make test"]), answered(output))
    assert told(done) == [("command", "make test", code)]
    assert told(codex_lines(called("shell", command=["grep", "a b", "x"]))) == [("command", "grep 'a b' x", None)]


def test_a_command_that_goes_on_gets_its_exit_code_later() -> None:
    running = answered("Wall time: 0.2 seconds\nProcess running with session ID 7\nOutput:\n")
    asked = called("write_stdin", "c2", session_id=7, chars="")
    ended = answered("Wall time: 2 seconds\nProcess exited with code 6\nOutput:\n", "c2")
    assert told(codex_lines(called("exec_command", cmd="sleep 2; exit 6"), running, asked, ended)) == [
        ("command", "sleep 2; exit 6", 6)
    ]


def test_patches_name_their_files() -> None:
    patch = "*** Begin Patch\n*** Update File: a b.py\n@@\n-x\n+y\n*** Delete File: old.py\n*** End Patch"
    call = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1", "input": patch}
    expected = [("change", "a b.py", None), ("change", "old.py", None)]
    assert told(codex_lines(call)) == expected
    refused = {"type": "custom_tool_call_output", "call_id": "c1", "output": "apply_patch verification failed: no"}
    assert told(codex_lines({**call}, refused)) == []


def test_a_command_of_a_tool_that_runs_commands_by_itself_counts() -> None:
    item = {"type": "CommandExecution", "id": "x", "command": ["/bin/bash", "-lc", "make"], "exit_code": 2}
    ours = {"as": "event_msg", "type": "item_completed", "turn_id": "t1", "item": item}
    assert told(codex_lines({**ours})) == [("command", "make", 2)]
    assert told(codex_lines({**ours, "turn_id": "t0"})) == [], "it belongs to the turn before"
    assert told(codex_lines({**ours, "item": {**item, "source": "user_shell"}})) == [], "the user has typed it"


def test_codex_reads_the_turn_after_the_position(tmp_path: Path) -> None:
    now, marked = time.time(), mark("0a1b2c3d")
    rollout = tmp_path / "home/sessions" / f"{date.fromtimestamp(now):%Y/%m/%d}" / "rollout-x.jsonl"
    rollout.parent.mkdir(parents=True)
    head = {"type": "session_meta", "payload": {"id": "x", "source": "cli"}}
    mine = {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": marked}}
    begin = b"".join(json.dumps(line).encode() + b"\n" for line in (head, mine))
    recorded = (RECORDS / "codex-0.166.0.jsonl").read_bytes()
    first = recorded.index(b'"task_complete"')
    rollout.write_bytes(begin + recorded[: recorded.index(b"\n", first) + 1])
    folder = tmp_path / "terminal"
    folder.mkdir()
    (folder / NOTES).write_text(json.dumps(asdict(Notes(str(tmp_path / "home"), marked, now))))
    assert len(told(CODEX.read_actions(folder, 0))) == 3
    end = rollout.stat().st_size
    assert CODEX.read_actions(folder, end) is None, "no turn has begun after that"
    rollout.write_bytes(begin + recorded)
    assert told(CODEX.read_actions(folder, end)) == [], "the last turn did nothing"
    assert CODEX.read_actions(tmp_path, 0) is None, "there is no record"


def claude_turns() -> list[tuple[str, list[Told]]]:
    """The prompt of each turn of the recorded transcript, and what its own lines tell at its end."""
    calls, found = claude.TranscriptCalls(), []
    for line in (RECORDS / "claude-2.1.325.jsonl").read_bytes().splitlines():
        after = claude.read_call(calls, 0, line)
        if after is not calls and calls.prompts:
            found.append((min(calls.prompts), told(calls.log.actions)))
        calls = after
    return [*found, (min(calls.prompts), told(calls.log.actions))]


def test_a_recorded_transcript_of_claude_code() -> None:
    turns = [done for _, done in claude_turns()]
    assert turns[:2] == [[("tool", "Agent", None)]] * 2
    assert turns[2] == [("command", "sleep 2; exit 6", None)], "it goes on in the background"
    (read,) = turns[3]
    assert (read[0], Path(read[1]).name) == ("read", "README.md")
    assert turns[4] == []


@pytest.fixture
def terminal(tmp_path: Path) -> Path:
    """A terminal whose hooks name the recorded transcript."""
    shutil.copytree(RECORDS / "claude-2.1.325", tmp_path / "claude-2.1.325")
    shutil.copy(RECORDS / "claude-2.1.325.jsonl", tmp_path)
    (tmp_path / OWN).mkdir()
    return tmp_path


def prompted(folder: Path, prompt: str, transcript: str = "claude-2.1.325.jsonl") -> None:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "x", "prompt_id": prompt}
    with (folder / HOOKS_FILE).open("a") as file:
        file.write(json.dumps({**event, "transcript_path": str(folder / transcript)}) + "\n")


def cut_after_turn(folder: Path, number: int) -> str:
    """Leave the transcript as it was at the end of a turn; the answer is the id of its prompt."""
    path = folder / "claude-2.1.325.jsonl"
    lines, calls, turns = path.read_bytes().splitlines(keepends=True), claude.TranscriptCalls(), 0
    first = ""
    for at, line in enumerate(lines):
        after = claude.read_call(calls, 0, line)
        if after is not calls:
            turns += 1
            if turns > number:
                path.write_bytes(b"".join(lines[:at]))
                return first
            first = min(after.prompts)
        calls = after
    return first


def test_the_tools_of_sub_agents_count(terminal: Path) -> None:
    prompted(terminal, cut_after_turn(terminal, 1))
    agent, ran, read = told(CLAUDE.read_actions(terminal, 0))
    assert agent == ("tool", "Agent", None)
    assert ran == ("command", "echo from the sub-agent; exit 5", 5)
    assert (read[0], Path(read[1]).name) == ("read", "README.md")


def test_a_transcript_that_lags_behind_tells_of_nothing_yet(terminal: Path) -> None:
    cut_after_turn(terminal, 1)
    prompted(terminal, "a later prompt")
    assert CLAUDE.read_actions(terminal, 0) == TurnActions()
    prompted(terminal, "another", "missing.jsonl")
    assert CLAUDE.read_actions(terminal, 0) is None, "without a transcript nobody knows"
    assert CLAUDE.read_actions(terminal / "missing", 0) is None


def transcript(*messages: dict[str, Any]) -> list[Told]:
    prompt = {"type": "user", "promptId": "p1", "message": {"content": "do it"}}
    lines = [json.dumps(entry).encode() for entry in (prompt, *messages)]
    calls = reduce(lambda found, line: claude.read_call(found, 0, line), lines, claude.TranscriptCalls())
    return told(calls.log.actions)


def used(name: str, call: str = "u1", **given: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call, "name": name, "input": given}
    return {"type": "assistant", "message": {"content": [block]}}


def result(text: Any, call: str = "u1", *, error: bool = False, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}
    return {"type": "user", "promptId": "p1", "message": {"content": [block]}, **more}


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Bash", {"command": "make"}, ("command", "make", 0)),
        ("Read", {"file_path": "/a"}, ("read", "/a", None)),
        ("Grep", {"pattern": "x", "path": "/p"}, ("read", "/p", None)),
        ("Glob", {"pattern": "*.py"}, ("read", "*.py", None)),
        ("Edit", {"file_path": "/a", "old_string": "x"}, ("change", "/a", None)),
        ("MultiEdit", {"file_path": "/a"}, ("change", "/a", None)),
        ("Write", {"file_path": "/a", "content": "x"}, ("change", "/a", None)),
        ("NotebookEdit", {"notebook_path": "/n"}, ("change", "/n", None)),
        ("mcp__browser__click", {}, ("tool", "mcp__browser__click", None)),
        ("TodoWrite", {"todos": []}, None),
    ],
)
def test_the_tools_of_claude_code(tool: str, given: dict[str, Any], expected: Told | None) -> None:
    assert transcript(used(tool, **given), result("fine")) == ([expected] if expected else [])


def test_what_claude_code_was_not_let_do_was_not_done() -> None:
    assert transcript(used("Bash", command="make"), result("Exit code 2\nno rule", error=True))[0][2] == 2
    assert transcript(used("Bash", command="make"), result("The user doesn't want to proceed", error=True)) == []
    assert transcript(used("Read", file_path="/a"), result("File does not exist.", error=True)) == []
    assert transcript(used("Grep", pattern="x"), result("<tool_use_error>No such tool", error=True)) == []
    timed_out = transcript(used("Bash", command="make"), result("Command timed out after 2m", error=True))
    assert timed_out == [("command", "make", None)]
    again = used("Bash", command="make")
    assert transcript(again, again, result("ok")) == [("command", "make", 0)], "a message is written once for each part"


def test_the_scripted_agents_record(tmp_path: Path) -> None:
    lines = [
        {"event": "begin", "turn": 1},
        {"event": "action", "kind": "command", "text": "old", "exit_code": 0},
        {"event": "end", "turn": 1},
        {"event": "begin", "turn": 2},
        {"event": "action", "kind": "command", "text": "make", "exit_code": 2},
        {"event": "action", "kind": "read", "text": "a.md"},
        {"event": "action", "kind": "odd", "text": "a.md"},
        {"event": "end", "turn": 2},
    ]
    assert SCRIPTED.read_actions(tmp_path, 0) is None
    (tmp_path / OWN).mkdir()
    (tmp_path / RECORD).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert told(SCRIPTED.read_actions(tmp_path, 0)) == [("command", "make", 2), ("read", "a.md", None)]


def test_an_agent_without_a_record_is_not_known() -> None:
    class Other(type(SCRIPTED)):  # type: ignore[misc]
        read_actions = Provider.read_actions

    assert Other().read_actions(Path("/nowhere"), 0) is None


def test_long_ones_are_shortened_and_control_characters_removed() -> None:
    assert shorten("printf '\x1b[31mred\x1b[0m\x1b]2;title\x07 \u202ex'") == "printf 'red x'"
    command = "cat > report.md <<'EOF'\n" + "a line of a report\n" * 500 + "EOF\npytest -q"
    assert shorten(command) == "cat > report.md <<'EOF'\n…\nEOF\npytest -q"
    long = shorten("x" * 10_000_000 + " end")
    assert len(long) <= LONGEST + 3
    assert long.endswith(" end")
    assert "\ud800" not in shorten("half \ud800 a character")


def test_the_first_and_the_last_of_many_are_kept() -> None:
    log = ActionLog()
    for number in range(1000):
        log.add(f"c{number}", action(COMMAND, str(number)))
        log.ended(f"c{number}", number % 3)
    found = log.actions
    assert (len(found.items), found.left_out) == (MOST, 1000 - MOST)
    assert (found.items[0].text, found.items[-1].text, found.items[-1].exit_code) == ("0", "999", 0)
    both = found + bounded([Action(kind=READ, text="more")])
    assert (len(both.items), both.left_out, both.items[-1].text) == (MOST, 1001 - MOST, "more")


def test_no_exit_code_is_too_large_to_be_told() -> None:
    assert action(COMMAND, "x", 10**30).exit_code is None
    log = ActionLog()
    log.add("c", action(COMMAND, "x"))
    log.ended("c", -(10**30))
    assert log.actions.items[0].exit_code is None
