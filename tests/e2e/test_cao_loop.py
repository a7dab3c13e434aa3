"""`quintet run` over the real CAO with the real Codex and the real OpenSpec: FAIL, then PASS, archived, committed."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.brains import RoleBrain
from tests.e2e.cao import cao_server
from tests.e2e.home import clean_environment
from tests.e2e.install import ensure_codex, ensure_openspec
from tests.e2e.model import ScriptedModel
from tests.e2e.processes import living_in
from tests.e2e.project import CHANGE, FAIL_THEN_PASS, TASK, VERIFY, git, make_project
from tests.e2e.rig import OLDER_CODEX, QUINTET, RUN_SECONDS

pytestmark = pytest.mark.e2e_all


def test_analyst_to_pass_over_cao(tmp_path: Path) -> None:
    # the newest release with which CAO 2.5.4 is known to reach the end of a loop
    programs = [ensure_codex(OLDER_CODEX.codex), ensure_openspec()]
    project, profiles = tmp_path / "project", tmp_path / "profiles"
    subprocess.run([*QUINTET, "profiles", "export", str(profiles)], check=True, capture_output=True)
    make_project(project, clean_environment(tmp_path, programs))
    begin = git(project, "rev-parse", "HEAD")
    with (
        ScriptedModel(RoleBrain(FAIL_THEN_PASS)) as model,
        cao_server(model_url=model.url, profiles=profiles, projects=[project], programs=programs) as cao,
    ):
        settings = {
            "API": cao.url,
            "WD": str(project),
            "PROMPT": TASK,
            "VERIFY_CMD": VERIFY,
            "POST_OPENSPEC_ARCHIVE": "1",
            "POST_GIT_COMMIT": "1",
            "POST_GIT_COMMIT_COMMENT": "Write the answer down",
            "CLEANUP_ON_EXIT": "1",
        }
        done = subprocess.run(
            [*QUINTET, "run"],
            env=clean_environment(cao.home, programs) | settings,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + cao.tail()
        assert "reminder" not in done.stdout
        prompts = [request.prompt for request in model.turns]
        assert len(prompts) == 14, "two cycles for the analyst, two for the programmer in each round, two tests"
        running = living_in(cao.home)
        assert running, "CAO itself"

    assert (project / "answer.txt").read_text() == "42\n"
    state = json.loads((project / ".tmp/quintet-state.json").read_text())
    assert (state["final_status"], state["current_round"]) == ("PASS", 2)
    assert [path.name for path in (project / "openspec/changes/archive").glob(f"*-{CHANGE}")]
    assert not (project / "openspec/changes" / CHANGE).exists()
    assert git(project, "rev-list", "--count", f"{begin}..HEAD") == "1"
    assert git(project, "log", "-1", "--format=%s") == "Write the answer down"
    assert git(project, "status", "--porcelain") == ""
    assert ".tmp" not in git(project, "ls-files")
    # what the model received is what was sent, byte for byte
    run = project / ".tmp" / state["run_id"] / "prompts"
    assert [path.read_text().strip() for path in sorted(run.iterdir())] == [prompt.strip() for prompt in prompts]
