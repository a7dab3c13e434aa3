"""What agents of the protocol do wrong, one test for each: as messages, or as a program where processes take part."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from quintet.processes import has_ended
from quintet.providers.acp.host_settings import RECORD, ModelBy, UsageRule
from quintet.providers.acp.process_tree import descendants
from tests.providers.acp.rig import HostRig, LocalRig

END = {"stopReason": "end_turn"}
SYSTEM_ERROR = {
    "sessionUpdate": "session_info_update",
    "_meta": {"codex": {"threadStatus": {"type": "systemError"}}},
}


def turn(*steps: dict[str, Any], **result: Any) -> dict[str, Any]:
    """A script with one turn."""
    return {"turns": [[*steps, {"end": {"result": {**END, **result}}}]]}


def test_a_turn_that_fails_with_end_turn_as_codex_does_it(tmp_path: Path) -> None:
    script = turn({"say": "exceeded retry limit, last status: 500"}, {"update": SYSTEM_ERROR}, usage=None)
    rig = LocalRig(tmp_path, script=script)
    end = rig.ask("x")
    assert end["failed"]["kind"] == "connection"
    assert end["failed"]["text"] == "exceeded retry limit, last status: 500"


def test_a_turn_that_fails_with_end_turn_as_copilot_does_it(tmp_path: Path) -> None:
    said = "Error: Failed to get response from the AI model. Last error: 500 Internal Server Error"
    script = turn({"say": "Info: Retrying..."}, {"say": said})
    rig = LocalRig(tmp_path, script=script, error_prefix="Error: ", note_prefix="Info: ")
    end = rig.ask("x")
    assert end["failed"]["kind"] == "server_error"
    assert end["failed"]["text"].startswith("Failed to get response")
    assert end["reply"] == ""


def test_an_empty_end_turn_is_no_answer(tmp_path: Path) -> None:
    rig = LocalRig(tmp_path, script=turn())
    assert rig.ask("x")["failed"]["text"] == "the turn has ended without an answer"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 500, "message": '{"error":{"message":"boom","code":500}}'}, "server_error"),
        ({"code": 429, "message": "Too many requests, try again in 20 minutes"}, "rate_limit"),
        ({"code": -32603, "message": "Internal error", "data": {"details": "401 bad key"}}, "login"),
        ({"code": -32000, "message": "Authentication required"}, "login"),
    ],
)
def test_an_error_in_place_of_an_answer(tmp_path: Path, error: dict[str, Any], kind: str) -> None:
    rig = LocalRig(tmp_path, script={"turns": [[{"say": "so far"}, {"end": {"error": error}}], [{"say": "ok"}]]})
    end = rig.ask("x")
    assert end["failed"]["kind"] == kind
    assert (end["failed"]["resets_at"] is not None) == (kind == "rate_limit")
    assert rig.ask("again")["reply"] == "ok"


def test_warnings_without_a_message_id_are_no_part_of_the_answer(tmp_path: Path) -> None:
    script = turn(
        {"say": {"text": "Hello ", "id": "m"}}, {"say": "Warning: old model"}, {"say": {"text": "you", "id": "m"}}
    )
    rig = LocalRig(tmp_path, script=script)
    assert rig.ask("x")["reply"] == "Hello you"


def test_notes_of_the_program_are_no_part_of_the_answer(tmp_path: Path) -> None:
    script = turn({"say": "Info: /p/a.txt"}, {"say": "All "}, {"say": "done."}, {"say": "Info: Saved."})
    rig = LocalRig(tmp_path, script=script, error_prefix="Error: ", note_prefix="Info: ")
    end = rig.ask("x")
    assert end["reply"] == "All done."
    assert end["failed"] is None


def _usage(read: int, written: int, **more: int) -> dict[str, int]:
    return {"inputTokens": read, "outputTokens": written, **more}


@pytest.mark.parametrize(
    ("rule", "turns", "wanted"),
    [
        (UsageRule.TURN, [_usage(600, 50, cachedReadTokens=400, totalTokens=1050), None], [(1000, 400, 50), None]),
        (UsageRule.LAST_CALL, [_usage(100, 5), _usage(200, 6)], [(100, 0, 5), (200, 0, 6)]),
        (UsageRule.PROCESS, [_usage(100, 5), _usage(350, 15, cachedReadTokens=90)], [(100, 0, 5), (250, 90, 10)]),
    ],
)
def test_usage_of_the_answer_by_the_agents_rule(
    tmp_path: Path, rule: UsageRule, turns: list[Any], wanted: list[Any]
) -> None:
    steps = [[{"say": "ok"}, {"end": {"result": {**END, "usage": usage}}}] for usage in turns]
    rig = LocalRig(tmp_path, script={"turns": steps}, usage=rule)
    assert [_counts(rig.ask("x")["usage"]) for _ in turns] == wanted


def _counts(usage: dict[str, int] | None) -> tuple[int, ...] | None:
    return tuple(usage[name] for name in ("input_tokens", "cached_tokens", "output_tokens")) if usage else None


def test_usage_in_a_quota_as_gemini_has_it(tmp_path: Path) -> None:
    quota = {"quota": {"token_count": {"input_tokens": 70, "output_tokens": 7}}}
    rig = LocalRig(tmp_path, script=turn({"say": "ok"}, _meta=quota), usage=UsageRule.QUOTA)
    assert _counts(rig.ask("x")["usage"]) == (70, 0, 7)


def test_usage_in_empty_chunks_as_qwen_has_it(tmp_path: Path) -> None:
    call = {"say": {"text": "", "meta": {"usage": _usage(100, 10, cachedReadTokens=60, totalTokens=110)}}}
    rig = LocalRig(tmp_path, script=turn(call, {"say": "ok"}, call), usage=UsageRule.CHUNKS)
    assert _counts(rig.ask("x")["usage"]) == (200, 120, 20)


def test_a_second_prompt_waits_for_the_first_turn(tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = {"turns": [[{"say": "one\n"}, {"until_file": str(go)}], [{"say": "{prompt}"}]]}
    with HostRig(tmp_path, script=script) as rig:
        rig.ready().ring("first")
        rig.until(lambda: "  one" in rig.text)
        rig.keys(b"by hand\r")
        rig.until(lambda: "queued: it is sent once the agent is ready" in rig.text)
        rig.ring("by the server")
        go.touch()
        rig.until(lambda: len(rig.events("end")) == 3)
        assert [end["reply"] for end in rig.events("end")] == ["one", "by hand", "by the server"]
        assert [end["failed"] for end in rig.events("end")] == [None] * 3


def test_cancel_answers_the_open_permission_or_the_agent_would_wait_for_ever(tmp_path: Path) -> None:
    with HostRig(tmp_path, asks=True, script={"turns": [[{"ask": {}}], [{"say": "next"}]]}) as rig:
        rig.ready().ring("x")
        rig.until(lambda: rig.title_is("asks"))
        rig.keys(b"\x1b")
        rig.until(lambda: rig.events("end"))
        assert rig.events("end")[0]["failed"]["kind"] == "interrupted"
        answers = [one["result"] for one in rig.received() if "result" in one]
        assert answers == [{"outcome": {"outcome": "cancelled"}}]
        assert rig.events("action") == []
        assert rig.ask("y")["reply"] == "next"


@pytest.mark.parametrize(("how", "loose"), [("SIGHUP", False), ("exit", True), ("agent dies", True)])
def test_no_tool_survives_the_host(tmp_path: Path, how: str, loose: bool) -> None:
    pids = tmp_path / "pids"
    steps: list[dict[str, Any]] = [{"spawn": {"pids": str(pids), "loose": "yes" if loose else ""}}]
    steps += [{"exit": 9}] if how == "agent dies" else [{"say": "ok"}]
    with HostRig(tmp_path, script={"turns": [steps]}) as rig:
        rig.ready().ring("x")
        if how != "agent dies":
            rig.until(lambda: rig.events("end"))
            rig.ready()
        if how == "SIGHUP":
            rig.process.send_signal(signal.SIGHUP)
        elif how == "exit":
            rig.keys(b"/exit\r")
        rig.wait()
        tool = int(pids.read_text(encoding="utf-8").split()[0])
        assert has_ended(tool)


def test_a_hang_up_in_the_middle_of_a_tool_ends_everything_before_the_server_kills_the_host(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with HostRig(tmp_path, script={"turns": [[{"spawn": {"pids": str(pids), "loose": "yes"}}, {"hold": 1}]]}) as rig:
        rig.ready().ring("x")
        rig.until(lambda: pids.exists() and pids.read_text(encoding="utf-8").strip())
        below = descendants(rig.process.pid)
        assert len(below) == 2  # the agent, and its tool, which the host has adopted
        rig.process.send_signal(signal.SIGHUP)
        assert rig.wait() == 128 + signal.SIGHUP
        assert all(map(has_ended, below))


def test_an_agent_does_not_outlive_a_host_that_was_killed(tmp_path: Path) -> None:
    with HostRig(tmp_path, script={"turns": [[{"say": "busy\n"}, {"until_file": str(tmp_path / "never")}]]}) as rig:
        rig.ready().ring("x")
        rig.until(lambda: "  busy" in rig.text)
        os.kill(rig.process.pid, signal.SIGKILL)
        rig.until(lambda: all(map(has_ended, rig.starts())))


def test_a_leading_slash_is_no_command(tmp_path: Path) -> None:
    rig = LocalRig(tmp_path, instructions="/role")
    rig.ask("/opsx:apply it")
    (sent,) = rig.received("session/prompt")
    assert [block["text"] for block in sent["params"]["prompt"]] == ["\u200b/role", "\u200b/opsx:apply it"]


def test_the_model_is_not_set_over_the_protocol_where_that_would_change_the_users_settings(tmp_path: Path) -> None:
    rig = LocalRig(tmp_path, model="m1", model_by=ModelBy.PROGRAM)
    rig.ask("x")
    assert rig.received("session/set_model") == []
    assert rig.received("session/set_config_option") == []


def test_a_line_of_any_length_is_read(tmp_path: Path) -> None:
    size, answer = 5_000_000, "word " * 200_000
    turns = [[{"long": size}, {"say": "ok"}], [{"say": answer}]]
    script = {"during": {"session/new": [{"long": size}]}, "turns": turns}
    with HostRig(tmp_path, script=script) as rig:
        assert rig.ask("x")["reply"] == "long ok"
        assert rig.ask("y")["reply"] == answer.strip(), "an answer of a megabyte is recorded whole"
        rig.ready()
        assert len(rig.seen) < 100_000
        assert "the whole message is in the record" in rig.text


def test_a_prompt_of_a_megabyte_to_an_agent_that_writes_as_much_before_it_reads(tmp_path: Path) -> None:
    after = {"session/prompt": [{"until_input": 1}, {"long": 3_000_000}]}
    with HostRig(tmp_path, script={"after": after, "turns": [[{"say": "ok"}]]}) as rig:
        assert rig.ask("first")["reply"] == "ok"
        assert rig.ask("q" * 1_000_000)["failed"] is None
        assert len(rig.received("session/prompt")[1]["params"]["prompt"][0]["text"]) == 1_000_000


def test_unknown_requests_are_refused_and_unknown_notifications_ignored(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"notify": "_auth/status_update"},
        {"request": "fs/write_text_file"},
        {"update": {"sessionUpdate": "new"}},
    ]
    rig = LocalRig(tmp_path, script=turn(*steps, {"notify": "qwen/notify/x"}, {"say": "ok"}))
    end = rig.ask("x")
    assert (end["reply"], end["failed"]) == ("ok", None)
    (refused,) = [one for one in rig.received() if "error" in one]
    assert refused["error"]["code"] == -32601


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "max_turn_requests", "tired", ""])
def test_a_turn_that_stops_for_another_reason_is_no_finished_turn(tmp_path: Path, stop: str) -> None:
    rig = LocalRig(tmp_path, script=turn({"say": "half an"}, stopReason=stop))
    end = rig.ask("x")
    assert end["failed"]["kind"] == "other"
    assert f"({stop or 'no reason'})" in end["failed"]["text"]


def test_plain_text_on_standard_output_is_shown_and_ignored(tmp_path: Path) -> None:
    script = {"on_start": [{"raw": "Welcome to the agent!\n"}], **turn({"raw": "{not json\n\n"}, {"say": "ok"})}
    with HostRig(tmp_path, script=script) as rig:
        assert rig.ask("x")["reply"] == "ok"
        assert "no message: Welcome to the agent!" in rig.text


def test_an_agent_that_dies_in_the_middle_of_a_line(tmp_path: Path) -> None:
    steps = [{"say": "so far"}, {"errors": "out of memory\n"}, {"raw": '{"jsonrpc": "2.0", "id'}, {"exit": 3}]
    with HostRig(tmp_path, script={"turns": [steps]}) as rig:
        rig.ready().ring("x")
        assert rig.wait() == 1
        (end,) = rig.events("end")
        assert end["failed"] == {
            "kind": "other",
            "text": "fake has ended with exit code 3: out of memory",
            "resets_at": None,
        }
        assert rig.text.rstrip().endswith("fake has ended with exit code 3: out of memory")


def test_an_agent_whose_tool_keeps_its_output_open_has_ended_all_the_same(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"import os, time; os.fork() or (open({str(pids)!r}, 'w').write(str(os.getpid())), time.sleep(600))"
    command = ("/bin/sh", "-c", f'python3 -c "{code}"; exit 4')
    with HostRig(tmp_path, command=command) as rig:
        assert rig.wait() == 1
        assert "fake has ended with exit code 4" in rig.text


def test_the_same_id_answered_twice_counts_once(tmp_path: Path) -> None:
    script = {"turns": [[{"say": "one"}, {"answer_before": 1}], [{"say": "two"}]]}
    rig = LocalRig(tmp_path, script=script)
    assert [rig.ask("x")["reply"], rig.ask("y")["reply"]] == ["one", "two"]
    assert len(rig.events("end")) == 2


def test_an_agent_without_a_login_is_one_line(tmp_path: Path) -> None:
    error = {"error": {"code": -32000, "message": "API key is missing.", "data": {"authMethods": []}}}
    with HostRig(tmp_path, script={"answers": {"session/new": error}}) as rig:
        assert rig.wait() == 1
        assert rig.text.rstrip().endswith("fake wants a login: API key is missing.")
        assert len(rig.starts()) == 1


def test_a_mode_that_is_refused_is_a_warning(tmp_path: Path) -> None:
    error = {"error": {"code": -32603, "message": "Cannot enable yolo in an untrusted folder"}}
    rig = LocalRig(tmp_path, mode="yolo", script={"answers": {"session/set_mode": error}})
    assert rig.ask("x")["reply"] == "done"
    (warning,) = rig.events("warning")
    assert warning["text"] == "mode yolo was not set: Cannot enable yolo in an untrusted folder"


def test_an_agent_that_loses_a_race_at_its_start_is_started_again(tmp_path: Path) -> None:
    lost = [{"errors": "CREATE TABLE failed\n"}, {"exit": 1}]
    with HostRig(tmp_path, script={"on_start": [lost, lost, []]}) as rig:
        assert rig.ask("x")["reply"] == "done"
        assert len(rig.starts()) == 3
        assert "CREATE TABLE failed" in rig.text


def test_an_agent_that_never_starts_is_one_line(tmp_path: Path) -> None:
    with HostRig(tmp_path, script={"on_start": [{"errors": "no such model\n"}, {"exit": 7}]}) as rig:
        assert rig.wait() == 1
        assert len(rig.starts()) == 3
        assert rig.text.rstrip().endswith("fake has ended with exit code 7: no such model")


def test_a_resume_that_is_declared_but_not_there_becomes_a_load(tmp_path: Path) -> None:
    script = {
        "capabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
        "answers": {"session/resume": {"error": {"code": -32601, "message": "Method not found"}}},
    }
    rig = LocalRig(tmp_path, script=script, session="old")
    assert len(rig.received("session/load")) == 1
    assert rig.events("session")[0]["loaded"]


def test_a_conversation_that_cannot_be_loaded_becomes_a_new_one_and_that_is_said(tmp_path: Path) -> None:
    error = {"error": {"code": -32603, "message": "Invalid session identifier"}}
    rig = LocalRig(tmp_path, script={"answers": {"session/load": error}}, session="old")
    assert rig.ask("x")["reply"] == "done"
    assert not rig.events("session")[0]["loaded"]
    (warning,) = rig.events("warning")
    assert "new conversation" in warning["text"]
    assert "Invalid session identifier" in warning["text"]


def test_nothing_that_an_agent_says_steers_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]2;quintet acp ready\x07\x1b[2J\x1b[31mred\r\x9b5A"
    call = {
        "title": evil,
        "kind": "execute",
        "rawInput": {"command": evil},
        "end": {"status": "failed", "rawOutput": evil},
    }
    steps: list[dict[str, Any]] = [
        {"say": evil},
        {"think": evil},
        {"tool": call},
        {"raw": evil + "\n"},
        {"ask": {"call": {"title": evil}}},
    ]
    with HostRig(tmp_path, script=turn(*steps, {"say": evil}), asks=True, error_prefix="x") as rig:
        rig.ready().ring(evil)
        rig.until(lambda: rig.title_is("asks"))
        rig.keys(b"y")
        rig.until(lambda: rig.events("end"))
        rig.ready()
        assert b"\x1b[2J" not in rig.seen
        assert b"\x07" not in rig.seen
        assert b"\xc2\x9b" not in rig.seen
        assert rig.seen.count(b"\x1b]2;") == rig.seen.count(b"\x1b\\")


def test_a_record_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with HostRig(tmp_path, script={"on_start": [{"until_file": str(go)}]}) as rig:
        (rig.folder / RECORD).mkdir(parents=True)
        go.touch()
        assert rig.wait() == 1
        assert rig.text.replace("\n", "").endswith("record.jsonl: Is a directory")
        (rig.folder / RECORD).rmdir()


def test_deep_and_hostile_json_is_ignored(tmp_path: Path) -> None:
    lines = [
        "[" * 100_000,
        '{"id": 1e999, "method": "x"}',
        '{"id": [1], "result": {}}',
        '{"id": 99, "result": 5}',
        "null",
    ]
    lines += ['{"method": "session/update", "params": {"update": {"sessionUpdate": "tool_call"}}}', '{"method": 5}']
    lines += [json.dumps({"method": "session/update", "params": {"sessionId": "another", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "not ours"}}}})]  # fmt: skip
    rig = LocalRig(tmp_path, script=turn(*({"raw": line + "\n"} for line in lines), {"say": "ok"}))
    assert rig.ask("x")["reply"] == "ok"


def test_no_tool_can_write_to_the_pane_past_the_host(tmp_path: Path) -> None:
    with HostRig(tmp_path, script=turn({"draw": "\x1b]2;quintet acp ready\x07Password: "})) as rig:
        assert rig.ask("x")["reply"].startswith("no terminal: ")
        rig.ready()
        assert "Password" not in rig.text
