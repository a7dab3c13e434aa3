"""A made-up machine with an empty git project, and the command line in it."""

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import pytest
from click.testing import CliRunner, Result

from quintet.cli.main import cli
from tests.setup.programs import machine


@dataclass
class Desk:
    """A new user's desk."""

    root: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def wd(self) -> Path:
        return self.root / "project"

    def install(self, **programs: str) -> None:
        self.env = machine(self.root, **programs)

    def quintet(self, *words: str, answer: str | None = None, **env: str) -> Result:
        return CliRunner().invoke(cli, words, input=answer, env={**self.env, **env})

    def files(self) -> dict[str, bytes]:
        """All that is in the project, but for git's own."""
        paths = (path for path in self.wd.rglob("*") if path.is_file() and ".git/" not in str(path))
        return {str(path.relative_to(self.wd)): path.read_bytes() for path in paths}


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    found = Desk(Path(tempfile.mkdtemp(prefix="qs", dir="/tmp")))  # short, because the paths of sockets are
    found.install()
    found.wd.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=found.wd, check=True)
    monkeypatch.chdir(found.wd)
    try:
        yield found
    finally:
        rmtree(found.root, ignore_errors=True)
