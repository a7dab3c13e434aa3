"""People in the loop with real agents: a draft, a gate with a rejection and a note, and a pull request at the end."""

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.brains import Answer, RoleBrain
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import QUINTET, RUN_SECONDS, Cast, Rig, rig
from tests.setup.test_drafting import TASK

pytestmark = pytest.mark.e2e

CODEX, CLAUDE = Cast(codex="0.166.0"), Cast(claude="2.1.325")
CASTS = pytest.mark.parametrize("cast", [CODEX, CLAUDE], ids=["codex", "claude"])
GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$(dirname "$0")/calls"
[ "$2" != list ] || { echo "[]"; exit 0; }
cat > "$(dirname "$0")/body"
echo https://example.invalid/pull/7
"""


def quintet(made: Rig, *words: str) -> tuple[int, str]:
    env = {**made.env, "PROVIDER": made.cast.provider}
    done = subprocess.run(
        [*QUINTET, *words], env=env, cwd=made.project, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    return done.returncode, done.stdout + done.stderr


def waits_for(made: Rig, gate: str, sent_back: int = 0) -> None:
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        path = made.project / ".tmp/quintet-state.json"
        state = json.loads(path.read_text()) if path.exists() else {}
        if (state.get("waiting"), state.get("sent_back")) == (gate, sent_back):
            return
        time.sleep(0.1)
    raise AssertionError(f"the run does not wait at {gate}")


@CASTS
def test_a_draft_by_a_real_agent_changes_nothing_else(cast: Cast) -> None:
    brain = RoleBrain({"draft.md": [Answer(TASK, before=("ls", "echo changed > answer.txt; echo x > stray.txt"))]})
    with rig(cast, brain) as made:
        before = {path.name: path.read_bytes() for path in made.project.iterdir() if path.is_file()}
        code, said = quintet(made, "draft", "greet people")
        assert code == 0, said
        assert (made.project / "tasks/greet-people-by-their-name.md").read_text() == TASK
        assert {path.name: path.read_bytes() for path in made.project.iterdir() if path.is_file()} == before
        assert "of the agent and its checks to the project undone" in said
        assert made.left() == {}


@CASTS
def test_a_specification_is_sent_back_once_and_the_result_is_proposed(cast: Cast, tmp_path: Path) -> None:
    programs, remote = tmp_path / "bin", tmp_path / "remote.git"
    programs.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    with rig(cast, RoleBrain(FAIL_THEN_PASS)) as real:
        made = replace(real, env={**real.env, "PATH": f"{programs}{os.pathsep}{real.env['PATH']}"})
        git = ["git", "-C", str(made.project)]
        subprocess.run([*git, "remote", "add", "origin", str(remote)], check=True)
        process = made.start(APPROVE="spec,result", POST_PR="draft")
        waits_for(made, "spec")
        assert quintet(made, "reject", "name the file that changes")[0] == 0
        waits_for(made, "spec", 1)
        assert quintet(made, "note", "--role", "programmer", "mind the gap")[0] == 0
        assert quintet(made, "approve")[0] == 0
        waits_for(made, "result", 1)
        assert not (programs / "calls").exists(), "nothing is pushed before the word"
        assert quintet(made, "approve")[0] == 0
        said, _ = process.communicate(timeout=RUN_SECONDS)
        assert process.returncode == 0, said
        prompts = made.sent_prompts()
        sent_back = ["name the file that changes" in prompt for prompt in prompts]
        assert sent_back == [*([False] * 4), *([True] * 4), *([False] * (len(prompts) - 8))], (
            "worker and reviewer, twice"
        )
        assert sum("mind the gap" in prompt for prompt in prompts) == 1
        assert "pr create" in (programs / "calls").read_text()
        assert "## What the PASS rests on" in (programs / "body").read_text()
        heads = subprocess.run(["git", "for-each-ref"], cwd=remote, capture_output=True, text=True, check=True).stdout
        assert heads.count("refs/heads/") == 1
