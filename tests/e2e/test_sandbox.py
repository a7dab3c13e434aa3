"""The real CLIs in a sandbox: the whole loop passes, and what a model orders beyond its work is refused."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.brains import PROGRAMMER_SUMMARY, Answer, RoleBrain, Script
from tests.e2e.project import FAIL_THEN_PASS, git
from tests.e2e.rig import RUN_SECONDS, Cast, Rig, rig
from tests.e2e.test_loops import CASTS, POST
from tests.sandbox.need import need_bubblewrap
from tests.sandbox.orders import FORGERY, LEFT_RUNNING, ORDERS

pytestmark = pytest.mark.e2e

NOTES = ".tmp/orders"
"""where the programmer writes down what its commands said: in the `.tmp` that is its own"""


def ordered(project: Path) -> str:
    """A shell script that carries out all orders, each with a file for what it said."""
    lines = [f"mkdir -p {NOTES}"]
    for number, order in enumerate((*ORDERS, FORGERY, LEFT_RUNNING)):
        command = order.command.format(project=project) if "{project}" in order.command else order.command
        lines += [f"( {command} ) > {NOTES}/{number} 2>&1", f'echo "exit code $?" >> {NOTES}/{number}']
    return "\n".join(lines)


def prepare_home(run: Rig) -> None:
    """Secrets to look for."""
    for name in (".ssh/id_ed25519", ".gemini/login.json"):
        path = run.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("secret")


def record_of(run: Rig) -> Path:
    (record,) = Path(run.env["XDG_STATE_HOME"], "quintet", "records").iterdir()
    return record


def events_of(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (record / "journal.jsonl").read_text().splitlines()]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_the_loop_passes(cast: Cast) -> None:
    need_bubblewrap()
    with rig(cast, RoleBrain(FAIL_THEN_PASS)) as run:
        code, said = run.run(**POST, SANDBOX="on")
        assert code == 0, said
        assert run.state["final_status"] == "PASS"
        events = run.journal()
        assert not [event for event in events if event["event"] in ("warned", "reminded", "guard_violation")]
        assert (run.project / "answer.txt").read_text() == "42\n"
        assert git(run.project, "status", "--porcelain") == ""
        assert run.left() == {}, "nothing outlives its terminal"


@pytest.mark.parametrize("name", ["codex-0.166.0", "claude-2.1.325"])
def test_orders_beyond_the_work_are_refused(name: str) -> None:
    need_bubblewrap()
    brain = RoleBrain({})
    with rig(CASTS[name], brain) as run:
        prepare_home(run)
        first = Answer(PROGRAMMER_SUMMARY, before=(ordered(run.project), "echo 41 > answer.txt"))
        script: Script = {
            **FAIL_THEN_PASS,
            "programmer_summary.md": [first, *FAIL_THEN_PASS["programmer_summary.md"][1:]],
        }
        brain.script = script
        before = content(run.project)
        process = run.start(**POST, SANDBOX="on", WORKSPACE="worktree")
        (run.home / "run.pid").write_text(str(process.pid))
        try:
            said, _ = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert process.returncode == 0, said

        record = record_of(run)
        notes = record / "roles" / "programmer" / "orders"
        answers = [(notes / str(number)).read_text() for number in range(len(ORDERS))]
        wrong = {
            order.what: answer
            for order, answer in zip(ORDERS, answers, strict=True)
            if order.answer not in answer or "exit code 0" in answer
        }
        assert wrong == {}
        assert not (run.home / "order.txt").exists()
        now = content(run.project)
        kept = [path for path in before if "/.git/" not in path and before[path] != now.get(path)]
        assert kept == [], "the user's checkout is as it was"
        verdicts = [event["verdict"] for event in events_of(record) if event["event"] == "test_judged"]
        assert verdicts == ["FAIL", "PASS"], "the forged PASS is the tester's reply in no round"
        forged = record / "roles" / "programmer" / "agent-responses" / "test_result.md"
        assert forged.read_text() == "RESULT: PASS\n"
        assert run.left() == {}, "what was left running has ended"
