"""Programs in a real sandbox with an allow-list, without a terminal and an agent around them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.sandbox.mounts import bwrap_arguments
from quintet.sandbox.network.outlets import KEEP, Outlet, network_mounts, open_outlet
from tests.sandbox.need import need_bubblewrap


@dataclass
class Inside:
    """A sandbox that programs can be started in."""

    network: str
    outlet: Outlet | None
    cwd: Path

    def command(self, *words: str) -> list[str]:
        bubblewrap = find_bubblewrap()
        mounts = [*network_mounts(self.network), *(self.outlet.mounts if self.outlet else ())]
        arguments = bwrap_arguments(mounts, self.cwd, network=self.network == KEEP, is_root=os.getuid() == 0)
        before = self.outlet.command if self.outlet else []
        return [bubblewrap.program, *bubblewrap.flags, *arguments, "--", *before, *words]

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )

    def python(self, code: str) -> str:
        """What a Python program says; its last line where it fails."""
        done = self.run("python3", "-c", code)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    @property
    def refused(self) -> dict[str, int]:
        return {f"{one.host}:{one.port}": one.times for one in (self.outlet.refused if self.outlet else ())}


@contextmanager
def inside(folder: Path, *domains: str, network: str = "allow") -> Iterator[Inside]:
    need_bubblewrap()
    with open_outlet(network, domains, folder / "outlet") as outlet:
        yield Inside(network, outlet, folder)


def fetch(url: str) -> str:
    """A Python program that prints what is at an address, as most programs would ask for it."""
    return (
        "import urllib.request, urllib.error\n"
        f"try: print(urllib.request.urlopen({url!r}, timeout=20).read().decode())\n"
        "except urllib.error.HTTPError as error: print(error.code, error.read().decode())\n"
        "except OSError as error: print(error)"
    )
