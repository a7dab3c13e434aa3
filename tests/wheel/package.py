"""The built package, installed into an empty environment: what a user gets, not the checkout."""

import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import ZipFile

from tests.hermetic import machine_environment

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Package:
    """A wheel and an sdist, made of the checkout."""

    folder: Path

    @classmethod
    def build(cls, folder: Path) -> "Package":
        """Build the sdist first and the wheel from it: a wheel that works shows that the sdist is complete."""
        _do([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
        return cls(folder)

    @property
    def wheel(self) -> Path:
        (found,) = self.folder.glob("*.whl")
        return found

    @property
    def sdist(self) -> Path:
        (found,) = self.folder.glob("*.tar.gz")
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """The files of the wheel."""
        with ZipFile(self.wheel) as wheel:
            return frozenset(wheel.namelist())

    def metadata(self) -> str:
        (name,) = (name for name in self.names if name.endswith(".dist-info/METADATA"))
        with ZipFile(self.wheel) as wheel:
            return wheel.read(name).decode("utf-8")

    def install(self, folder: Path) -> Path:
        """Install the wheel into a virtual environment of its own; return the command `quintet`.

        The pip of the checkout does it, because a pip in the new environment takes seconds to set up.
        """
        _do([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "--disable-pip-version-check"]
        _do([*pip, "install", "--quiet", str(self.wheel)])
        return folder / "bin/quintet"


def fill_in(task: Path, explore: str, scenario: str) -> None:
    """Do what a user does with the blanks of a new task file; its check is deleted."""
    lines = task.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if "<<fill in:" not in line]
    at = kept.index("*** SCENARIO TEST ***")
    task.write_text("\n".join([*kept[:at], explore, kept[at], scenario]) + "\n", encoding="utf-8")


def _do(command: list[str]) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=machine_environment(), check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-2000:]}"
