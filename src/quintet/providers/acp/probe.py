"""Trying an agent of the protocol: it is started, asked for a session, and ended."""

import json
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

import psutil

from quintet import __version__, files
from quintet.errors import ServerError
from quintet.processes import end_processes
from quintet.providers.acp.agents import AcpAgent
from quintet.providers.acp.launch import Command, agent_command
from quintet.providers.base import Launch, StartRefused
from quintet.providers.json_lines import as_object, json_object, text_in

SECONDS: Final = 60.0
"""how long the agent may take until it has a session"""
_END_SECONDS: Final = 0.5
_LONGEST: Final = 2000
"""characters of its error output that are read"""


def try_session(agent: AcpAgent, launch: Launch) -> StartRefused | None:
    """Start the agent as a run does and ask for a session; None where it gives one."""
    with tempfile.TemporaryDirectory(prefix="quintet-acp-") as place:
        try:
            command = agent_command(agent, replace(launch, folder=Path(place)))
        except ServerError as error:
            return StartRefused(str(error), agent.install or "correct its command")
        for name, text in command.files.items():
            files.write(Path(place) / name, text)
        said = _try(command, launch)
    words = shlex.join([agent.program, *agent.arguments])
    return StartRefused(said, f"run {agent.program} once and log in, or look at what {words} prints") if said else None


def _try(command: Command, launch: Launch) -> str:
    """What keeps the agent from a session; empty where it gives one."""
    pipe, env = subprocess.PIPE, {**launch.env, **command.env}
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command.argv, env=env, cwd=launch.cwd, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True
            )
        except OSError as error:
            return f"{command.argv[0]}: {error.strerror}"
        try:
            return _ask(process, launch.cwd, errors)
        finally:
            _end(process)


def _ask(process: "subprocess.Popen[bytes]", cwd: Path, errors: IO[bytes]) -> str:
    told = {"name": "quintet", "version": __version__}
    requests: dict[str, dict[str, Any]] = {
        "initialize": {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": told},
        "session/new": {"cwd": str(cwd), "mcpServers": []},
    }
    answers = _answers(process)
    for number, (method, params) in enumerate(requests.items(), start=1):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        with suppress(OSError):  # it has ended, which shows below
            os.write(process.stdin.fileno(), json.dumps(request).encode() + b"\n") if process.stdin else None
        answer = next((one for one in answers if one.get("id") == number and "method" not in one), None)
        if answer is None:
            errors.seek(max(errors.seek(0, os.SEEK_END) - _LONGEST, 0))
            said = errors.read().decode(errors="replace").strip()
            return said or f"no answer to {method} within {SECONDS:g} s, or an end without a word"
        if error := as_object(answer.get("error")):
            return text_in(error, "message") or json.dumps(error)
    return ""


def _answers(process: "subprocess.Popen[bytes]") -> Iterator[dict[str, Any]]:
    """The lines that the agent writes, until it ends or the time is over."""
    deadline, rest = time.monotonic() + SECONDS, b""
    while process.stdout and select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0.0))[0]:
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from map(json_object, lines)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the agent and all that it has started."""
    with suppress(psutil.Error):
        agent = psutil.Process(process.pid)
        end_processes([*agent.children(recursive=True), agent], _END_SECONDS)
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with suppress(OSError):
                pipe.close()
    process.wait()
