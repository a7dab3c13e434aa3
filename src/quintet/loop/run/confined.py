"""Run commands of a run (checks, the setup command) in a sandbox of their own where its agents are in one."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from quintet import command, files
from quintet.config import Settings
from quintet.layout import TMP, caches_folder, user_state_folder
from quintet.sandbox.confine import confine
from quintet.sandbox.environment import passed_on
from quintet.sandbox.identity import write_git_identity
from quintet.sandbox.mounts import Mount
from quintet.sandbox.network.outlets import open_outlet
from quintet.sandbox.network.proxy import HostRefusal
from quintet.sandbox.places import SandboxPlaces, Wishes
from quintet.sandbox.private_git import make_private_git


class ConfinedCommands:
    """Runs commands in a tree; in a sandbox, all of them share `/tmp` and `.tmp`, which nothing outside reads."""

    def __init__(self, settings: Settings, tree: Path, place: Path, git: Path | None = None) -> None:
        self._settings, self._tree, self._place = settings, tree, place
        self._git = git or place / "git"
        """the private git folder, by default one that no agent has written to"""
        self._runs = 0
        self.refused: list[HostRefusal] = []
        """the hosts that commands have asked for in vain"""

    def clear(self) -> None:
        """Forget what earlier commands have left in `/tmp` and `.tmp`."""
        files.remove_tree(self._place)

    def run(
        self, line: str | Sequence[str], seconds: float, shield: command.Shield, pins: Iterable[Mount] = ()
    ) -> command.Outcome:
        """Run a shell line or a program; all that it has started ends with it."""
        words = ("/bin/sh", "-c", line) if isinstance(line, str) else line
        if not self._settings.is_sandboxed:
            return command.run(words, self._tree, seconds, shield=shield, supervised=True)
        inside = {"HOME": str(Path.home()), **passed_on(os.environ, self._settings.sandbox_env)}
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
        # a new home for each command: Python would run what an earlier one has left in its user site
        tmp, home = self._place / "tmp", self._place / f"home-{self._runs}"
        self._runs += 1
        for folder in (tmp, home):
            files.make_folder(folder)
        write_git_identity(home, self._tree, os.environ)
        make_private_git(self._tree, self._git)
        caches = caches_folder(project) / "checks"  # agents write to the others
        scratch = self._place / "scratch"
        return SandboxPlaces(self._tree, scratch, tmp, home=home, caches=caches, wishes=wishes, git=self._git)
