"""A pane whose session is just being ended: a look at it waits for that end."""

import asyncio
from typing import cast

from quintet.server.terminal.facts import Facts
from quintet.server.terminal.pane import Pane
from quintet.server.tmux.connection import TmuxConnection
from quintet.server.tmux.errors import TmuxError

FACTS = Facts("aa00bb11", "s", "w", "scripted", "tester", "/", "/", 0.0)


class GoneTmux:
    """A connection whose server has gone."""

    async def run_all(self, commands: list[str]) -> list[list[str]]:
        raise TmuxError(f"{len(commands)} commands for nobody")


def test_a_look_while_the_session_ends_waits_for_it() -> None:
    tries = iter(range(3))

    async def reconnect() -> None:
        if next(tries) == 2:
            pane.mark_ended("its session was ended")

    pane = Pane(cast("TmuxConnection", GoneTmux()), "%1", 1, FACTS, reconnect)
    assert asyncio.run(pane.look()).end == "its session was ended"
