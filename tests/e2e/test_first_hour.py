"""A new user's first hour with the real Codex and the real OpenSpec: the built wheel, a clean home, a fresh project."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.brains import RoleBrain
from tests.e2e.home import clean_environment, make_home
from tests.e2e.install import ensure_codex, ensure_openspec
from tests.e2e.model import ScriptedModel
from tests.e2e.processes import end_all_in, living_in
from tests.e2e.project import CHANGE, FAIL_THEN_PASS, VERIFY, git
from tests.e2e.rig import CODEX, RUN_SECONDS
from tests.wheel.package import Package, fill_in

pytestmark = pytest.mark.e2e_all

TASK = "tasks/write-the-answer-down.md"


@dataclass(frozen=True)
class User:
    command: Path
    home: Path
    project: Path
    env: Mapping[str, str]

    def do(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(self.command), *words],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == code, f"quintet {' '.join(words)}: {done.returncode}\n{done.stdout}"
        return done.stdout


@contextmanager
def user(folder: Path) -> Iterator[User]:
    """A machine with Codex, OpenSpec and the installed wheel, and a repository with one commit."""
    command = Package.build(folder / "dist").install(folder / "venv")
    programs = [command, ensure_codex(CODEX.codex), ensure_openspec()]
    place = Path(tempfile.mkdtemp(prefix="q5-"))  # short, because the paths of sockets are
    project = place / "project"
    project.mkdir()
    (project / "README.md").write_text("# A project without an answer\n")
    with ScriptedModel(RoleBrain(FAIL_THEN_PASS)) as model:
        home = make_home(model.url, [], programs)
        env = clean_environment(home, programs) | {"XDG_STATE_HOME": str(place / "x"), "OPENSPEC_TELEMETRY": "0"}
        for words in (
            ["init", "--quiet", "--initial-branch=main"],
            ["config", "user.name", "Test"],
            ["config", "user.email", "test@localhost"],
            ["add", "--all"],
            ["commit", "--quiet", "--message", "Begin"],
        ):
            git(project, *words)
        try:
            yield User(command, home, project, env)
        finally:
            end_all_in(home)
            shutil.rmtree(place)
    shutil.rmtree(home)


def test_from_an_empty_project_to_a_commit(tmp_path: Path) -> None:
    with user(tmp_path) as me:
        said = me.do("init", "--yes")
        assert "found          codex: " in said
        assert "openspec/, " in said
        for skill in ("explore", "ff-change", "apply-change"):
            assert (me.project / f".agents/skills/openspec-{skill}/SKILL.md").is_file()
        assert not (me.home / ".config/openspec").exists(), "the user's own settings of OpenSpec stay as they are"
        before = git(me.project, "status", "--porcelain")
        assert "Nothing was changed." in me.do("init", "--yes")
        assert git(me.project, "status", "--porcelain") == before

        me.do("new", "Write the answer down")
        me.do("lint", TASK, code=1)
        fill_in(me.project / TASK, "P1: answer.txt holds 42 and nothing else.", "Run: cat answer.txt\nExpected: 42")
        assert "nothing is missing" in me.do("lint", TASK)

        config = me.project / "quintet.json"
        post = {"openspec_archive": True, "git_commit": True, "git_commit_comment": "Write the answer down"}
        config.write_text(json.dumps(json.loads(config.read_text()) | {"verify_cmd": VERIFY, "post_processing": post}))
        git(me.project, "add", "--all")
        git(me.project, "commit", "--quiet", "--message", "Set up Quintet")
        checks = {one["name"]: one["level"] for one in json.loads(me.do("doctor", "--json"))["checks"]}
        assert set(checks.values()) == {"ok"}, checks
        assert "The first prompt goes to analyst" in me.do("run", TASK, "--dry-run")
        assert not (me.project / ".tmp").exists()

        me.do("run", TASK, "--cleanup-on-exit")
        assert "PASS" in me.do("runs")
        assert not (me.project / "answer.txt").exists(), "the run has a worktree of its own"
        assert "+1 -0  answer.txt" in me.do("diff", "--stat")
        me.do("merge")
        assert (me.project / "answer.txt").read_text() == "42\n"
        assert list((me.project / "openspec/changes/archive").glob(f"*-{CHANGE}"))
        assert git(me.project, "log", "-1", "--format=%s") == "Write the answer down"
        assert git(me.project, "status", "--porcelain") == ""
        me.do("discard")
        assert git(me.project, "branch", "--format=%(refname:short)") == "main"
        assert living_in(me.home) == {}
