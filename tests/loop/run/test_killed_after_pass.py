"""A run that is killed at any write after its PASS goes on there.

Nothing is asked, archived, committed, pushed or proposed twice, and nothing is left out.
"""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.chaos.books import STATE
from harness.chaos.outcome import KILLED, PASSED, Outcome
from harness.chaos.sim import plan as kinds
from harness.chaos.sim.plan import Plan
from harness.chaos.sim.run import World
from quintet.config import Settings
from quintet.loop.decide.state import Status, Turn
from quintet.roles import TESTER

CHANGE = "openspec/changes/add-greeting"
GH = """#!/bin/sh
here=$(dirname "$0")
case "$2" in
list) if [ -e "$here/opened" ]; then echo '[{"url": "https://example.invalid/pull/7"}]'; else echo '[]'; fi;;
create) [ -e "$here/opened" ] && exit 1; touch "$here/opened"; echo "$1 $2 $3 $4" >> "$here/gh-calls";;
esac
"""
OPENSPEC = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
mkdir -p openspec/changes/archive && mv "openspec/changes/$2" "openspec/changes/archive/2026-01-01-$2"
"""


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


class PassingWorld(World):
    """A run that begins at its tester, who says PASS, in a repository with an OpenSpec change."""

    def __init__(self, root: Path, template: Path, server: str, verify: str) -> None:
        root.mkdir()
        super().__init__(Plan(0, "", (), "one pass", server, cleanup=False, accept=True), root)
        self.verify, self.remote = verify, root / "remote.git"
        shutil.copytree(template, root, dirs_exist_ok=True)

    @property
    def settings(self) -> Settings:
        wanted = {"post_openspec_archive": True, "post_git_commit": True, "verify_cmd": self.verify, "post_pr": "draft"}
        return replace(super().settings, start_agent=TESTER.name, **wanted)  # type: ignore[arg-type]

    def git(self, *arguments: str) -> str:
        return git(self.wd, *arguments)

    def begin(self) -> tuple[str, Outcome]:
        outcome = Outcome(0, "", "")
        self.start(outcome)
        assert outcome.violations == [], outcome.tell()
        return outcome.codes[-1], outcome


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for openspec and gh that note their calls; git has a user."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("openspec", OPENSPEC), ("gh", GH)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (tmp_path / "gitconfig").write_text("[user]\n name = A\n email = a@example.invalid\n")
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder / "calls"


@pytest.fixture
def template(tmp_path: Path, program: Path) -> Path:  # noqa: ARG001 - git has a user
    """The project and its remote, to be copied for each kill."""
    project = tmp_path / "template" / "project"
    (project / CHANGE).mkdir(parents=True)
    (project / CHANGE / "proposal.md").write_text("Greet.\n")
    git(project, "init", "--quiet", "--template=")
    git(project, "commit", "--quiet", "--allow-empty", "-m", "first")
    git(project, "checkout", "--quiet", "-b", "greeting")
    git(project, "init", "--quiet", "--bare", "--template=", "../remote.git")
    git(project, "remote", "add", "origin", "../remote.git")
    return project.parent


@pytest.mark.parametrize("server", [kinds.CAO, kinds.EMBEDDED])
def test_a_kill_at_any_write_after_the_pass(tmp_path: Path, template: Path, program: Path, server: str) -> None:
    """Kill at every fourth write, and on the other kind of server, where the same is written, at those in between."""
    verify, offset = ("true", 0) if server == kinds.CAO else ("", 2)
    whole = PassingWorld(tmp_path / "whole", template, server, verify)
    assert whole.begin()[0] == PASSED
    log = whole.moments.log
    archived = f"-{TESTER.output}.md"
    first = next(number for number, what in enumerate(log, 1) if archived in what and "prompts" not in what)
    assert len(log) - first > 20, "the reply's archive, the state of every step, the journal"
    last = max(number for number, what in enumerate(log, 1) if what.startswith("replace") and STATE.name in what)
    for number in range(first + offset, last + 1, 4):
        for name in ("calls", "gh-calls", "opened"):
            (program.parent / name).unlink(missing_ok=True)
        world = PassingWorld(tmp_path / str(number), template, server, verify)
        world.moments.planned[number] = world.moments.kill
        assert world.begin()[0] == KILLED
        prompts, terminals = len(world.server.arrivals), world.server._created
        saved = world.books.state()
        if saved and saved.turn is Turn.PASSED:  # the terminals may have gone with the machine
            world.server.lose_terminals(forget=True)
        code, outcome = world.begin()
        where = f"killed before {log[number - 1]!r} ({number})\n{outcome.tell()}"
        state = world.books.state()
        assert code == PASSED, where
        assert state is not None, where
        assert state.final_status is Status.PASS, where
        assert len(world.server.arrivals) == prompts == 1, where
        assert world.server._created == terminals, where
        assert program.read_text().splitlines() == ["archive add-greeting --yes"], where
        assert world.git("log", "--format=%s").splitlines() == ["Quintet: Add a greeting.", "first"], where
        assert world.git("status", "--porcelain") == "", where
        pushed = world.git("--git-dir", str(world.remote), "for-each-ref", "--format=%(refname) %(objectname)")
        assert pushed == f"refs/heads/greeting {world.git('rev-parse', 'HEAD')}", where
        assert (program.parent / "gh-calls").read_text().splitlines() == ["pr create --head greeting"], where
