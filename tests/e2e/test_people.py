"""People in the loop with real agents: a draft, a gate with a rejection and a note, and a pull request at the end."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.brains import Answer, RoleBrain
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, Rig, each_cli, rig
from tests.setup.test_drafting import TASK

pytestmark = pytest.mark.e2e_all

GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$(dirname "$0")/calls"
[ "$2" != list ] || { echo "[]"; exit 0; }
cat > "$(dirname "$0")/body"
echo https://example.invalid/pull/7
"""


def wait_at_gate(made: Rig, gate: str, sent_back: int = 0) -> None:
    """Wait until the run waits for approval."""

    def waits() -> bool:
        path = made.project / ".tmp/quintet-state.json"
        state = json.loads(path.read_text()) if path.exists() else {}
        return (state.get("waiting"), state.get("sent_back")) == (gate, sent_back)

    made.until(waits, f"the run waits at {gate}")


@each_cli
def test_a_draft_by_a_real_agent_changes_nothing_else(cast: Cast) -> None:
    brain = RoleBrain({"draft.md": [Answer(TASK, before=("ls", "echo changed > answer.txt; echo x > stray.txt"))]})
    with rig(cast, brain) as made:
        before = {path.name: path.read_bytes() for path in made.project.iterdir() if path.is_file()}
        code, said = made.quintet("draft", "greet people")
        assert code == 0, said
        assert (made.project / "tasks/greet-people-by-their-name.md").read_text() == TASK
        assert {path.name: path.read_bytes() for path in made.project.iterdir() if path.is_file()} == before
        assert "of the agent and its checks to the project undone" in said
        assert made.left() == {}


@each_cli
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
        wait_at_gate(made, "spec")
        assert made.quintet("reject", "name the file that changes")[0] == 0
        wait_at_gate(made, "spec", 1)
        assert made.quintet("note", "--role", "programmer", "mind the gap")[0] == 0
        assert made.quintet("approve")[0] == 0
        wait_at_gate(made, "result", 1)
        assert not (programs / "calls").exists(), "nothing is pushed before the word"
        assert made.quintet("approve")[0] == 0
        code, said = made.finish(process)
        assert code == 0, said
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
