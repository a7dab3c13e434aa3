"""A bare client of the Agent Client Protocol: what a program needs at least. The benchmarks measure against it."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SECONDS = 60.0


class BareClient:
    """One agent, asked one thing after the other; it is allowed everything that it asks for."""

    def __init__(self, process: subprocess.Popen[bytes], cwd: Path) -> None:
        self.process, self.cwd, self.session = process, cwd, ""
        self.seen: list[Json] = []
        """every message of the agent's, in order"""
        self.errors: list[str] = []
        self.allow: str = "allow_once"
        self._number = 0
        self._inbox: queue.Queue[Json | None] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def start(self, load: str = "") -> Json:
        """Begin a conversation, or go on with one."""
        self.ask("initialize", protocolVersion=1, clientCapabilities={})
        where: Json = {"cwd": str(self.cwd), "mcpServers": []}
        answer = self.ask("session/load", sessionId=load, **where) if load else self.ask("session/new", **where)
        self.session = load or answer.get("result", {}).get("sessionId", "")
        return answer

    def prompt(self, text: str, seconds: float = SECONDS) -> Json:
        """One turn: the message that ends it."""
        return self.ask("session/prompt", seconds, sessionId=self.session, prompt=[{"type": "text", "text": text}])

    def ask(self, method: str, /, seconds: float = SECONDS, **params: Any) -> Json:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        deadline = time.monotonic() + seconds
        while (message := self._inbox.get(timeout=max(deadline - time.monotonic(), 0.001))) is not None:
            if "method" not in message and message.get("id") == self._number:
                return message
        raise RuntimeError(f"the agent has ended in {method}: {self.process.wait()}")

    def send(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def texts(self) -> str:
        """All that the agent has said so far."""
        updates = [message["params"]["update"] for message in self.seen if message.get("method") == "session/update"]
        return "".join(one["content"]["text"] for one in updates if one.get("sessionUpdate") == "agent_message_chunk")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                self.errors.append(repr(line))
                continue
            self.seen.append(message)
            if message.get("method") == "session/request_permission":
                self._answer(message)
            elif "method" in message and "id" in message:
                self.send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            self._inbox.put(message)
        self._inbox.put(None)

    def _answer(self, message: Json) -> None:
        chosen = [one["optionId"] for one in message["params"]["options"] if one["kind"] == self.allow]
        outcome = {"outcome": "selected", "optionId": chosen[0]} if chosen else {"outcome": "cancelled"}
        self.send({"id": message["id"], "result": {"outcome": outcome}})


@contextlib.contextmanager
def bare(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Iterator[BareClient]:
    """The agent's process; it ends with the block."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    client = BareClient(process, cwd)
    try:
        yield client
    finally:
        # Some agents are two processes; both hold the pipes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        client.reader.join()
