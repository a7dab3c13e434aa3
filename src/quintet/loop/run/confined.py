"""Run commands of a run (checks, the setup command) in a sandbox of their own where its agents are in one."""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from quintet import command, files
from quintet.config import Settings
from quintet.layout import TMP, user_state_folder
from quintet.sandbox.confine import confine, environment_inside
from quintet.sandbox.mounts import Mount
from quintet.sandbox.network.outlets import open_outlet
from quintet.sandbox.network.proxy import HostRefusal
from quintet.sandbox.places import SandboxPlaces, Wishes


class ConfinedCommands:
    """Runs commands in a tree; in a sandbox, all of them share `/tmp` and `.tmp`, which nothing outside reads."""

    def __init__(self, settings: Settings, tree: Path, place: Path, hidden: Sequence[str] = ()) -> None:
        self._settings, self._tree, self._place = settings, tree, place
        self._hidden = hidden
        self.refused: list[HostRefusal] = []
        """the hosts that commands have asked for in vain"""

    def clear(self) -> None:
        """Forget what earlier commands have left in `/tmp` and `.tmp`."""
        shutil.rmtree(self._place, ignore_errors=True)

    def run(
        self, line: str | Sequence[str], seconds: float, shield: command.Shield, pins: Iterable[Mount] = ()
    ) -> command.Outcome:
        """Run a shell line or a program; all that it has started ends with it."""
        words = ("/bin/sh", "-c", line) if isinstance(line, str) else line
        if not self._settings.is_sandboxed:
            return command.run(words, self._tree, seconds, shield=shield, supervised=True)
        inside = environment_inside(os.environ)
        network = self._settings.sandbox_network
        with open_outlet(network, self._settings.sandbox_check_domains, self._place / "outlet") as outlet:
            before = confine(self._places(), inside, self._tree, network=network, outlet=outlet, pins=pins)
            ended = command.run(
                [*before, *words], self._tree, seconds, inside, shield=shield, supervised=True, inherits=False
            )
            self.refused += outlet.refused if outlet else []
        return ended

    def _places(self) -> SandboxPlaces:
        settings, project = self._settings, self._settings.workspace.project
        checkout = [project] if project != self._tree else []
        hidden = [user_state_folder(), *(path / TMP for path in checkout)]
        wishes = Wishes(
            settings.sandbox_write,
            [*map(str, hidden), *settings.sandbox_hide],
            [*map(str, checkout), *settings.sandbox_show],
        )
        tmp = self._place / "tmp"
        files.make_folder(tmp)
        return SandboxPlaces(self._tree, self._place / "scratch", tmp, foreign=self._hidden, wishes=wishes)
