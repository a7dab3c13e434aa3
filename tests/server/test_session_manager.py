"""The sessions that a server remembers."""

import asyncio
from pathlib import Path

from quintet.server.state_folder import StateFolder
from quintet.server.terminal.session_manager import MOST_GONE, SessionManager
from quintet.server.terminal.tmux_session import TmuxSession
from tests.server.rig import Rig


def test_of_the_sessions_that_have_ended_only_the_last_are_remembered(tmp_path: Path) -> None:
    async def remembered() -> list[str]:
        hub = SessionManager(StateFolder(tmp_path / "q"))
        for number in range(MOST_GONE + 5):
            name = f"cao-{number:02d}"
            hub._sessions[name] = TmuxSession(name, hub.state_folder, hub.events)
            hub._sessions[name].gone = number not in (0, 3)
        await hub.open()
        while len(hub._sessions) > MOST_GONE + 2:
            await asyncio.sleep(0.01)
        await hub.close()
        return sorted(hub._sessions)

    names = asyncio.run(asyncio.wait_for(remembered(), 30))
    assert names[:3] == ["cao-00", "cao-03", "cao-05"], "the living ones, and the last of the others"


def test_a_session_that_has_just_ended_can_still_be_asked_about(rig: Rig) -> None:
    terminal = rig.terminal()
    rig.http.post(f"/terminals/{terminal}/exit")
    rig.until(terminal, "error")
