"""Trying an agent of the protocol: it is started, asked for a session, and ended."""

import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import psutil

from quintet import files
from quintet.errors import ServerError
from quintet.processes import end_processes
from quintet.providers.acp.agents import AcpAgent
from quintet.providers.acp.host_settings import HostSettings
from quintet.providers.acp.json_rpc import Calls, LineReader, Response, read_message
from quintet.providers.acp.launch import Command, agent_command
from quintet.providers.acp.opening import Call, OpeningFailed, open_session
from quintet.providers.base import Launch, StartRefused

SECONDS: Final = 60.0
"""how long the agent may take until it has a session"""
_END_SECONDS: Final = 0.5
_LONGEST: Final = 2000
"""characters of its error output that are read"""


def try_session(agent: AcpAgent, launch: Launch) -> StartRefused | None:
    """Start the agent as a run does and ask for a session; None where it gives one."""
    try:
        command = agent_command(agent, launch)
    except ServerError as error:
        return StartRefused(str(error), agent.install or "correct its command")
    for name, text in command.files.items():
        files.write(launch.folder / name, text)
    said = _try(agent.name, command, launch)
    words = shlex.join([agent.program, *agent.arguments])
    return StartRefused(said, f"run {agent.program} once and log in, or look at what {words} prints") if said else None


def _try(name: str, command: Command, launch: Launch) -> str:
    """What keeps the agent from a session; empty where it gives one."""
    pipe, env = subprocess.PIPE, {**launch.env, **command.env}
    with tempfile.TemporaryFile() as errors:
        try:
            words = (*launch.before, *command.argv)
            process = subprocess.Popen(
                words, env=env, cwd=launch.cwd, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True
            )
        except OSError as error:
            return f"{command.argv[0]}: {error.strerror}"
        try:
            return _ask(process, name, launch.cwd, errors)
        finally:
            _end(process)


def _ask(process: "subprocess.Popen[bytes]", name: str, cwd: Path, errors: IO[bytes]) -> str:
    """Begin a conversation as the host does, without a mode and a model."""
    answers, calls = _answers(process), Calls()
    opening = open_session(HostSettings(name, ()), str(cwd), time.time())
    answer: Response | None = None
    try:
        while True:
            step = opening.send(answer)
            answer = None
            if isinstance(step, Call) and process.stdin:
                with suppress(OSError):  # it has ended, which shows below
                    os.write(process.stdin.fileno(), calls.request(*step))
                answer = next((one for one in answers if calls.answered(one) == step.method), None)
                if answer is None:
                    said = _tail(errors)
                    return said or f"it has ended, or has not answered {step.method} within {SECONDS:g} s"
    except StopIteration:
        return ""
    except OpeningFailed as failure:
        return str(failure)


def _tail(errors: IO[bytes]) -> str:
    """The last that it has said on standard error."""
    errors.seek(max(errors.seek(0, os.SEEK_END) - _LONGEST, 0))
    return errors.read().decode(errors="replace").strip()


def _answers(process: "subprocess.Popen[bytes]") -> Iterator[Response]:
    """What the agent answers, until it ends or the time is over."""
    deadline, reader = time.monotonic() + SECONDS, LineReader()
    while process.stdout and select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0.0))[0]:
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            return
        yield from (one for one in map(read_message, reader.feed(data)) if isinstance(one, Response))


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
