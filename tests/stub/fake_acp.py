"""An agent that speaks the Agent Client Protocol by a script, and does everything that real ones do wrong.

`python fake_acp.py SCRIPT`: a JSON file with the keys of `Script`. The standard library alone: it is a program.
"""

import json
import os
import re
import select
import shlex
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

STUBBORN = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); \
open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(600)"
CUT_LOOSE = "import os, subprocess, sys; os.setsid(); \
subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1]], start_new_session=True); os._exit(0)"


class Script:
    """What the agent does, with defaults for all of it."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.log = Path(raw["log"])
        """every line that came in, and a line {"start": ...} for each start"""
        self.on_start: list[Any] = raw.get("on_start", [])
        """steps before anything is read; of the n-th start where it is a list of lists"""
        self.capabilities: dict[str, Any] = raw.get("capabilities", {"loadSession": True})
        self.answers: dict[str, Any] = raw.get("answers", {})
        """by method: `null` for none, {"error": ...}, {"result": ...}; else the method is carried out"""
        self.during: dict[str, list[dict[str, Any]]] = raw.get("during", {})
        """by method: steps before its answer"""
        self.after: dict[str, list[dict[str, Any]]] = raw.get("after", {})
        """by method: steps after its answer"""
        self.turns: list[list[dict[str, Any]]] = raw.get("turns", [[{"say": "done"}]])
        """steps of each prompt; the last of them for all that follow"""
        self.by_prompt: list[tuple[str, list[dict[str, Any]]]] = raw.get("by_prompt", [])
        """patterns and steps: the first that is found in a prompt counts before `turns`"""


class FakeAgent:
    """Reads requests and carries them out, one after the other."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.waiting: deque[dict[str, Any]] = deque()
        """what came while something else was waited for"""
        self.session = f"session-{os.getpid()}"
        self.prompts = 0
        self.asked = 1000
        self.mode = "default"
        self.answer: dict[str, Any] = {}
        """the answer to the prompt, as far as the steps have said it"""

    def run(self) -> None:
        starts = sum(line.startswith('{"start"') for line in self.lines())
        self.note({"start": os.getpid()})
        steps = self.script.on_start
        if steps and isinstance(steps[0], list):
            steps = steps[min(starts, len(steps) - 1)]
        self.act(steps, None)
        while True:
            message = self.receive()
            if "method" in message and "id" in message:
                self.carry_out(message)

    def lines(self) -> list[str]:
        return self.script.log.read_text(encoding="utf-8").splitlines() if self.script.log.exists() else []

    def note(self, event: dict[str, Any]) -> None:
        with self.script.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def receive(self) -> dict[str, Any]:
        """The next message."""
        return self.waiting.popleft() if self.waiting else self.read()

    def read(self) -> dict[str, Any]:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        message: dict[str, Any] = json.loads(line)
        self.note({"in": message})
        return message

    def carry_out(self, message: dict[str, Any]) -> None:
        method = message["method"]
        self.act(self.script.during.get(method, []), message)
        told = self.script.answers.get(method, True)
        if told is None:
            return
        if told is not True:
            self.send({"id": message["id"], **told})
            return
        name = "do_" + method.replace("/", "_")
        result = getattr(self, name)(message) if hasattr(self, name) else None
        if result is None:
            self.send({"id": message["id"], "error": {"code": -32601, "message": f"Method not found: {method}"}})
        else:
            self.send({"id": message["id"], **result})
        self.act(self.script.after.get(method, []), message)

    def do_initialize(self, _: dict[str, Any]) -> dict[str, Any]:
        info = {"name": "fake-agent", "version": "1.2.3"}
        return {"result": {"protocolVersion": 1, "agentInfo": info, "agentCapabilities": self.script.capabilities}}

    def do_session_new(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"sessionId": self.session}}

    def do_session_load(self, message: dict[str, Any]) -> dict[str, Any]:
        self.session, self.mode = message["params"]["sessionId"], "default"
        self.say("an old answer")
        return {"result": {}}

    def do_session_resume(self, message: dict[str, Any]) -> dict[str, Any] | None:
        if "resume" not in self.script.capabilities.get("sessionCapabilities", {}):
            return None
        self.session, self.mode = message["params"]["sessionId"], "default"
        return {"result": {}}

    def do_session_set_mode(self, message: dict[str, Any]) -> dict[str, Any]:
        self.mode = message["params"]["modeId"]
        return {"result": {}}

    def do_session_set_model(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"result": {}}

    def do_session_set_config_option(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"configOptions": []}}

    def do_session_prompt(self, message: dict[str, Any]) -> dict[str, Any]:
        turns, text = self.script.turns, prompt_of(message)
        found = (steps for words, steps in self.script.by_prompt if re.search(words, text))
        steps = next(found, turns[min(self.prompts, len(turns) - 1)])
        self.prompts += 1
        self.answer = {"result": {"stopReason": "end_turn"}}
        self.act(steps, message)
        return self.answer

    def act(self, steps: list[dict[str, Any]], message: dict[str, Any] | None) -> None:
        for step in steps:
            for name, value in step.items():
                getattr(self, f"step_{name}")(value, message)

    def step_say(self, text: Any, message: dict[str, Any] | None) -> None:
        """Say a text, {"text", "id", "meta"}, or the prompt itself ("{prompt}"), or the mode ("{mode}")."""
        told = text if isinstance(text, dict) else {"text": text}
        words = told["text"].replace("{prompt}", prompt_of(message)).replace("{mode}", self.mode)
        extra = {"messageId": told["id"]} if "id" in told else {}
        self.say(words, **extra, **({"_meta": told["meta"]} if "meta" in told else {}))

    def say(self, text: str, **extra: Any) -> None:
        self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **extra})

    def step_think(self, text: str, _: Any) -> None:
        self.update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})

    def step_update(self, update: dict[str, Any], _: Any) -> None:
        self.update(update)

    def update(self, update: dict[str, Any]) -> None:
        self.send({"method": "session/update", "params": {"sessionId": self.session, "update": update}})

    def step_tool(self, tool: dict[str, Any], _: Any) -> None:
        """A call that begins and ends."""
        name = tool.get("toolCallId", f"call-{time.monotonic_ns()}")
        self.update({"sessionUpdate": "tool_call", "status": "pending", **tool, "toolCallId": name})
        self.update(
            {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": "completed"} | tool.get("end", {})
        )

    def step_end(self, answer: dict[str, Any], _: Any) -> None:
        """How the prompt is answered: {"result": ...} or {"error": ...}."""
        self.answer = answer

    def step_raw(self, line: str, _: Any) -> None:
        """Bytes as they are, not a message."""
        sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()

    def step_errors(self, text: str, _: Any) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def step_long(self, size: int, _: Any) -> None:
        """A message in a line of so many bytes."""
        self.say("long ", _meta={"padding": "x" * size})

    def step_until_input(self, _: Any, __: Any) -> None:
        """Wait until the next message is on its way, without reading it."""
        select.select([0], [], [])

    def step_notify(self, method: str, _: Any) -> None:
        self.send({"method": method, "params": {"x": 1}})

    def step_request(self, method: str, _: Any) -> None:
        """A request that no client knows; its answer is waited for, and is in the log."""
        self.await_answer(method, {"x": 1})

    def step_answer_before(self, _: Any, message: dict[str, Any] | None) -> None:
        """The answer of the prompt, which will be sent again at its end."""
        if message is not None:
            self.send({"id": message["id"], **self.answer})

    def step_ask(self, asked: dict[str, Any], _: Any) -> None:
        """A permission. Like gemini and qwen it waits for ever for an answer, also when the turn is cancelled."""
        options = asked.get(
            "options", [["proceed_once", "allow_once"], ["proceed_always", "allow_always"], ["cancel", "reject_once"]]
        )
        told = {
            "sessionId": self.session,
            "toolCall": {"toolCallId": "asked-1", "title": "Write a.txt", "kind": "edit", **asked.get("call", {})},
            "options": [{"optionId": name, "kind": kind, "name": name} for name, kind in options],
        }
        answer = self.await_answer("session/request_permission", told)["result"]["outcome"]
        if answer["outcome"] == "cancelled" and any(self.is_cancel(one) for one in self.waiting):
            self.answer = {"result": {"stopReason": "cancelled"}}
        else:
            self.say(f"answered {answer.get('optionId', answer['outcome'])}")

    def await_answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self.asked and "method" not in message:
                return message
            self.waiting.append(message)

    @staticmethod
    def is_cancel(message: dict[str, Any]) -> bool:
        return message.get("method") == "session/cancel"

    def step_hold(self, _: Any, __: Any) -> None:
        """Work until the turn is cancelled, or another prompt comes: like gemini, qwen and copilot, that cancels it."""
        while True:
            message = self.receive()
            if self.is_cancel(message) or message.get("method") == "session/prompt":
                break
        if not self.is_cancel(message):
            self.waiting.append(message)
        self.answer = {"result": {"stopReason": "cancelled"}}

    def step_respond(self, text: str, message: dict[str, Any] | None) -> None:
        """Write the response file that the prompt asks for."""
        found = re.findall(r"^cat > (.+) <<'QUINTET_END_", prompt_of(message), re.MULTILINE)
        Path(shlex.split(found[-1])[0]).write_text(text, encoding="utf-8")

    def step_once(self, taken: dict[str, Any], message: dict[str, Any] | None) -> None:
        """Steps that only the first process does that makes this file."""
        with suppress(FileExistsError):
            Path(taken["file"]).touch(exist_ok=False)
            self.act(taken["steps"], message)

    def step_until_file(self, path: str, _: Any) -> None:
        """Work until a file is there."""
        while not Path(path).exists():
            time.sleep(0.005)

    def step_spawn(self, spawned: dict[str, str], _: Any) -> None:
        """Start a tool that does not end when it is asked to; `loose` cuts itself off with a double fork."""
        command = [sys.executable, "-c", STUBBORN, spawned["pids"]]
        if spawned.get("loose"):
            command = [sys.executable, "-c", CUT_LOOSE, spawned["pids"], STUBBORN]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (Path(spawned["pids"]).exists() and Path(spawned["pids"]).read_text(encoding="utf-8").strip()):
            time.sleep(0.005)

    def step_draw(self, text: str, _: Any) -> None:
        """Write to the terminal past the host, as a tool may that asks for a password."""
        try:
            with Path("/dev/tty").open("w", encoding="utf-8") as terminal:
                terminal.write(text)
        except OSError as error:
            self.say(f"no terminal: {error.strerror}")

    def step_exit(self, code: int, _: Any) -> NoReturn:
        sys.stdout.flush()
        os._exit(code)

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sys.stdout.buffer.flush()


def prompt_of(message: dict[str, Any] | None) -> str:
    return "".join(block["text"] for block in message["params"].get("prompt", [])) if message else ""


if __name__ == "__main__":
    FakeAgent(Script(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))).run()
