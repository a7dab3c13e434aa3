"""A repository and a state directory for the tests of worktrees."""

import shutil
from pathlib import Path

import pytest

from tests.workspace.repositories import sh


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.org")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit, to be copied: git takes much longer to make another."""
    wd = tmp_path_factory.mktemp("template") / "shop"
    wd.mkdir()
    (wd / "README.md").write_text("A shop.\n")
    who = "-c user.name=Somebody -c user.email=somebody@example.org"
    sh(wd, f"git init --quiet --initial-branch=main && git add --all && git {who} commit --quiet --message Begin")
    return wd


@pytest.fixture
def checkout(tmp_path: Path, template: Path) -> Path:
    return shutil.copytree(template, tmp_path / "shop", symlinks=True)
