"""The host as a program: prompts come from the server's file or a person, turns go to the record and the pane."""

import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from quintet.providers import editor
from quintet.providers.acp.host_settings import FILE, RECORD, InstructionsBy
from tests.providers.acp.rig import DOORBELL, HostRig, LocalRig

RUN = {"title": "make test", "kind": "execute", "rawInput": {"command": "make test"}}
EDIT = {"title": "edit", "kind": "edit", "locations": [{"path": "/p/a.py"}]}


def test_a_turn_from_the_servers_file_to_the_record(tmp_path: Path) -> None:
    turn = [{"think": "hm"}, {"say": "first"}, {"tool": RUN | {"end": {"rawOutput": {"exit_code": 2}}}}, {"tool": EDIT}]
    turn += [{"say": "All "}, {"say": "done."}, {"end": {"result": {"stopReason": "end_turn", "usage": {
        "inputTokens": 600, "outputTokens": 50, "cachedReadTokens": 400, "totalTokens": 1050}}}}]  # fmt: skip
    with HostRig(tmp_path, script={"turns": [turn]}) as rig:
        end = rig.ask("do it")
        assert end["reply"] == "All done."
        assert end["stop"] == "end_turn"
        assert end["failed"] is None
        assert end["usage"] == {"input_tokens": 1000, "cached_tokens": 400, "output_tokens": 50}
        assert [event["text"] for event in rig.events("message")] == ["first", "All done."]
        assert [(one["kind"], one["text"], one["exit_code"]) for one in rig.events("action")] == [
            ("command", "make test", 2),
            ("change", "/p/a.py", None),
        ]
        (begin,) = rig.events("begin")
        assert (begin["turn"], begin["by"]) == (1, "server")
        (session,) = rig.events("session")
        assert session["agent"] == "fake-agent 1.2.3"
        assert not session["loaded"]
        assert stat.S_IMODE((rig.folder / RECORD).stat().st_mode) == 0o600
        rig.ready()
        for shown in ("» do it", "✗ $ make test (exit code 2)", "● edit /p/a.py", "All done.", "1,000 tokens read"):
            assert shown in rig.text


def test_a_prompt_of_any_bytes_arrives_as_it_is(tmp_path: Path) -> None:
    prompt = "\x1b[201~\t\"'\\ \x00 😀\r\n" * 12_000
    with HostRig(tmp_path, script={"turns": [[{"say": "ok"}]]}) as rig:
        rig.ask(prompt)
        (sent,) = rig.received("session/prompt")
        assert sent["params"]["prompt"] == [{"type": "text", "text": prompt}]
        assert not editor.is_waiting(rig.folder)
        editor.clear(rig.folder)
        assert [path.name for path in (rig.folder / editor.OWN).iterdir()] == ["record.jsonl"]


def test_a_doorbell_without_a_prompt_is_nothing(tmp_path: Path) -> None:
    with HostRig(tmp_path) as rig:
        rig.ready().keys(DOORBELL * 3)
        assert rig.ask("x")["reply"] == "done"
        assert len(rig.events("begin")) == 1


def test_a_doorbell_while_the_agent_starts_is_heard_later(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with HostRig(tmp_path, script={"on_start": [{"until_file": str(go)}]}) as rig:
        rig.until(lambda: rig.title_is("starting"))
        rig.ring("early")
        go.touch()
        rig.until(lambda: rig.events("end"))


def test_mode_model_and_role_are_set(tmp_path: Path) -> None:
    settings = {"mode": "yolo", "model": "m1", "instructions": "You test."}
    rig = LocalRig(tmp_path, **settings)
    rig.ask("one")
    rig.ask("two")
    asked = [(one["method"], one["params"]) for one in rig.received()[2:]]
    session = rig.events("session")[0]["id"]
    assert asked[:2] == [
        ("session/set_mode", {"sessionId": session, "modeId": "yolo"}),
        ("session/set_model", {"sessionId": session, "modelId": "m1"}),
    ]
    prompts = [[block["text"] for block in one["params"]["prompt"]] for one in rig.received("session/prompt")]
    assert prompts == [["You test.", "one"], ["two"]]


def test_the_role_is_a_system_prompt_where_the_agent_declares_that(tmp_path: Path) -> None:
    script: dict[str, Any] = {"capabilities": {"sessionCapabilities": {"systemPrompt": {}}}}
    settings = {"instructions": "You test.", "instructions_by": InstructionsBy.SYSTEM_PROMPT}
    rig = LocalRig(tmp_path, script=script, **settings)
    rig.ask("one")
    (new,) = rig.received("session/new")
    block = {"type": "text", "text": "You test."}
    assert new["params"]["systemPrompt"] == {"mode": "append", "content": [block]}
    assert len(rig.received("session/prompt")[0]["params"]["prompt"]) == 1


def test_the_model_as_an_option_where_there_is_no_method_for_it(tmp_path: Path) -> None:
    answers = {"session/set_model": {"error": {"code": -32601, "message": "Method not found"}}}
    rig = LocalRig(tmp_path, model="m1", script={"answers": answers})
    (option,) = rig.received("session/set_config_option")
    assert option["params"]["configId"] == "model"
    assert option["params"]["value"] == "m1"
    assert rig.events("warning") == []


def test_the_mode_as_an_option_where_there_is_no_method_for_it(tmp_path: Path) -> None:
    answers = {"session/set_mode": {"error": {"code": -32601, "message": "Method not found"}}}
    rig = LocalRig(tmp_path, mode="plan", script={"answers": answers})
    (option,) = rig.received("session/set_config_option")
    assert (option["params"]["configId"], option["params"]["value"]) == ("mode", "plan")
    assert rig.events("warning") == []


def test_a_model_that_the_agent_refuses_is_a_warning(tmp_path: Path) -> None:
    answers = {"session/set_model": {"error": {"code": -32602, "message": "no such model"}}}
    rig = LocalRig(tmp_path, model="m1", script={"answers": answers})
    assert rig.received("session/set_config_option") == []
    assert "model m1 was not set: no such model" in rig.events("warning")[0]["text"]


def test_a_person_types_a_prompt_and_ends_the_agent(tmp_path: Path) -> None:
    with HostRig(tmp_path, script={"turns": [[{"say": "you said {prompt}"}]]}) as rig:
        rig.ready().keys(b"hallox\x7f\r")
        rig.until(lambda: rig.events("end"))
        assert rig.events("end")[0]["reply"] == "you said hallo"
        assert rig.events("begin")[0]["by"] == "person"
        rig.ready().keys(b"\x04")
        assert rig.wait() == 0


def test_a_paste_is_one_prompt(tmp_path: Path) -> None:
    with HostRig(tmp_path, script={"turns": [[{"say": "{prompt}"}]]}) as rig:
        rig.ready().keys(b"\x1b[200~two\nlines\x1b[201~")
        rig.until(lambda: "[Pasted 2 lines, 9 characters]" in rig.text)
        rig.keys(b"\r")
        rig.until(lambda: rig.events("end"))
        assert rig.events("end")[0]["reply"] == "two\nlines"


def test_escape_cancels_a_turn_and_the_next_prompt_works(tmp_path: Path) -> None:
    with HostRig(tmp_path, script={"turns": [[{"say": "hm\n"}, {"hold": 1}], [{"say": "second"}]]}) as rig:
        rig.ready().ring("one")
        rig.until(lambda: rig.title_is("working") and "hm" in rig.text)
        rig.keys(b"\x1b")
        rig.until(lambda: rig.events("end"))
        assert rig.events("end")[0]["failed"]["kind"] == "interrupted"
        assert rig.ask("two")["reply"] == "second"


def test_an_arrow_key_does_not_cancel(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with HostRig(tmp_path, script={"turns": [[{"say": "hm\n"}, {"until_file": str(go)}]]}) as rig:
        rig.ready().ring("one")
        rig.until(lambda: rig.title_is("working") and "hm" in rig.text)
        rig.keys(b"\x1b[A\x1b[B\x1bOA")
        rig.keys(b"typed")
        rig.until(lambda: "› typed" in rig.text)
        go.touch()
        rig.until(lambda: rig.events("end"))
        assert rig.events("end")[0]["failed"] is None
        assert rig.received("session/cancel") == []


def has_ended_turns(rig: HostRig, number: int) -> bool:
    return len(rig.events("end")) == number


def test_a_permission_is_answered_by_kind(tmp_path: Path) -> None:
    keys = {b"y": "allowed: edit Write a.txt (proceed_once)", b"n": "not allowed: edit Write a.txt (cancel)"}
    keys[b"2"] = "allowed: edit Write a.txt (proceed_always)"
    with HostRig(tmp_path, asks=True, script={"turns": [[{"ask": {}}]]}) as rig:
        for number, (key, shown) in enumerate(keys.items()):
            rig.ready().ring("write")
            rig.until(lambda: rig.title_is("asks"))
            rig.keys(b"x9")  # no answers
            rig.keys(key)
            rig.until(partial(has_ended_turns, rig, number + 1))
            answer = shown.partition("(")[2].rstrip(")")
            assert rig.events("end")[-1]["reply"] == f"answered {answer}"
            event = rig.events("permission")[-1]
            assert (event["text"], event["answer"]) == ("edit Write a.txt", answer)
            rig.ready()
            assert f"  {shown}" in rig.text
    silent = LocalRig(tmp_path, script={"turns": [[{"ask": {}}]]})
    assert silent.ask("write")["reply"] == "answered proceed_once"
    assert "  allowed: edit Write a.txt (proceed_once)" in silent.text


def test_a_conversation_is_loaded_with_mode_and_role_again(tmp_path: Path) -> None:
    script = {"turns": [[{"say": "mode {mode}"}]]}
    settings = {"mode": "yolo", "instructions": "You test.", "session": "old-1", "session_opened": 1000.0}
    rig = LocalRig(tmp_path, script=script, **settings)
    assert rig.ask("go")["reply"] == "mode yolo"
    (session,) = rig.events("session")
    assert (session["id"], session["loaded"]) == ("old-1", True)
    assert session["at"] > settings["session_opened"], "the next program has to know when it was opened last"
    assert rig.received("session/new") == []
    assert [event["text"] for event in rig.events("message")] == ["mode yolo"]
    assert "mode yolo" in rig.text
    assert "an old answer" not in rig.text
    assert rig.received("session/prompt")[0]["params"]["prompt"][0]["text"] == "You test."


def test_a_conversation_is_resumed_where_the_agent_can_do_that(tmp_path: Path) -> None:
    script: dict[str, Any] = {"capabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}
    rig = LocalRig(tmp_path, script=script, session="old-1")
    assert rig.received("session/load") == []
    assert rig.events("session")[0]["loaded"]


def test_a_program_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    with HostRig(tmp_path, command=("no-such-program-at-all",)) as rig:
        assert rig.wait() == 1
        assert "no-such-program-at-all cannot be started: No such file or directory" in rig.text


def test_settings_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"name": "x"}', encoding="utf-8")
    command = [sys.executable, "-P", "-m", "quintet.providers.acp.host", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}: the settings of the host cannot be read: 'command'\n"


def test_the_hosts_own_commands_are_no_prompts(tmp_path: Path) -> None:
    with HostRig(tmp_path, script={"turns": [[{"say": "busy\n"}, {"hold": 1}]]}) as rig:
        rig.ready().keys(b"/rename analyst-1\r")
        rig.until(lambda: "\x1b]2;quintet acp ready · analyst-1\x1b\\".encode() in rig.seen)
        rig.ring("x")
        rig.until(lambda: "  busy" in rig.text)
        rig.keys(b"/exit\r")
        rig.until(lambda: "The turn is still running" in rig.text)
        rig.keys(b"\x1b")
        rig.ready().keys(b"/exit\r")
        assert rig.wait() == 0
        assert len(rig.received("session/prompt")) == 1


def test_a_command_that_the_agent_knows_is_text_for_it(tmp_path: Path) -> None:
    with HostRig(tmp_path) as rig:
        rig.ready().keys(b"/help me\r")
        rig.until(lambda: rig.events("end"))
        assert rig.received("session/prompt")[0]["params"]["prompt"][0]["text"] == "\u200b/help me"
