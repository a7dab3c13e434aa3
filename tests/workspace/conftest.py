"""A repository and a state directory for the tests of worktrees."""

from pathlib import Path

import pytest

from tests.workspace.repositories import sh


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.org")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    wd = tmp_path / "shop"
    wd.mkdir()
    sh(wd, "git init --quiet --initial-branch=main")
    (wd / "README.md").write_text("A shop.\n")
    sh(wd, "git add --all && git commit --quiet --message Begin")
    return wd
