"""Preparing a new terminal: its id, its private folder, and the command that starts its program."""

import asyncio
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quintet import files
from quintet.own_programs import distrust
from quintet.providers.base import Launch
from quintet.providers.editor import OWN
from quintet.providers.private_home import PrivateHome
from quintet.sandbox.network.outlets import Outlets
from quintet.server.refusals import BadRequest
from quintet.server.state_folder import PROJECT, StateFolder
from quintet.server.terminal.agent_home import give_back, make_agent_home
from quintet.server.terminal.launch_script import pane_environment, write_launch_script
from quintet.server.terminal.sandbox import inside_environment, open_terminal_outlet, sandbox_command
from quintet.server.terminal.startup import INITIAL
from quintet.server.terminal.strays import MARK
from quintet.server.terminal.terminal_spec import TerminalSpec
from quintet.supervise import PANE, command_before


@dataclass(frozen=True)
class PreparedTerminal:
    """A terminal that can be started now."""

    id: str
    command: list[str]
    spec: TerminalSpec
    """what was asked for, as far as it can be done"""

    @property
    def window(self) -> str:
        return f"{self.spec.profile}-{self.id[:4]}"


async def prepare_terminal(
    state_folder: StateFolder, session: str, spec: TerminalSpec, outlets: Outlets
) -> PreparedTerminal:
    """Make the terminal's folder with all files in it; nothing of it is left where that fails."""
    terminal_id = secrets.token_hex(4)
    environment = pane_environment(spec.env) | {MARK: terminal_id}
    distrust(spec.cwd)
    previous = state_folder.find_folder(spec.continues) if spec.continues else None
    folder, way_out = state_folder.make_folder(session, terminal_id), state_folder.outlet(session, terminal_id)
    try:
        files.make_folder(folder / OWN, folder)
        home = await asyncio.to_thread(_make_home, folder, spec, environment, previous)
        launch = Launch(
            terminal_id,
            spec.profile,
            spec.instructions,
            folder,
            spec.cwd,
            environment,
            model=spec.model,
            args=spec.args,
            previous=previous,
            asks=spec.asks,
            home=home,
        )
        # in a thread, because programs are asked what they know, and Codex may have to be started once
        plan = await asyncio.to_thread(spec.provider.launch, launch)
        _check_installed(plan.argv[0], plan.env.get("PATH") or environment.get("PATH", ""))
        files.write(folder / PROJECT, str(spec.cwd).encode("utf-8", "surrogateescape"), folder)
        if spec.initial:
            files.write(folder / INITIAL, spec.initial, folder)
        outlet = await asyncio.to_thread(open_terminal_outlet, outlets, way_out, spec)
        before = await asyncio.to_thread(sandbox_command, folder, spec, plan, home, env=environment, outlet=outlet)
        inside = inside_environment(spec, environment)
        command = write_launch_script(folder, spec.cwd, plan, inside, before or command_before(PANE))
    except BaseException:
        outlets.close(way_out)
        if previous is not None:
            give_back(folder, previous)
        state_folder.remove_folder(session, terminal_id)
        raise
    return PreparedTerminal(terminal_id, command, spec if plan.continues else replace(spec, continues=""))


def _make_home(folder: Path, spec: TerminalSpec, env: Mapping[str, str], previous: Path | None) -> PrivateHome | None:
    """The home of an agent in a sandbox; None where it uses that of the user."""
    if spec.sandbox is None:
        return None
    return make_agent_home(folder, spec.provider.registration, env, spec.cwd, previous)


def _check_installed(program: str, path: str) -> None:
    """Say plainly that a program is missing, before a pane says so in a shell's words."""
    if shutil.which(program, path=path) is None:
        raise BadRequest(f"{program} is not installed: it is not on the PATH")
