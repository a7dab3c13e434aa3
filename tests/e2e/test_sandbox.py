"""The real CLIs in a sandbox: what a model orders beyond its work is refused. Whole loops are in test_loops.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.brains import PROGRAMMER_SUMMARY, Answer, RoleBrain, Script
from tests.e2e.project import FAIL_THEN_PASS
from tests.e2e.rig import Cast, Rig, each_cli, rig
from tests.e2e.test_loops import POST
from tests.sandbox.need import need_bubblewrap
from tests.sandbox.orders import AT_HOME, FORGERY, LEFT_RUNNING, ORDERS

pytestmark = pytest.mark.e2e_all

NOTES = ".tmp/orders"
"""where the programmer writes down what its commands said: in the `.tmp` that is its own"""


def ordered(run: Rig) -> str:
    """A shell script that carries out all orders, each with a file for what it said."""
    lines = [f"mkdir -p {NOTES}"]
    for number, order in enumerate((*ORDERS, AT_HOME, FORGERY, LEFT_RUNNING)):
        command = order.command
        for name, value in {"project": str(run.project), "state": f"{run.env['XDG_STATE_HOME']}/quintet"}.items():
            command = command.replace(f"{{{name}}}", value)
        lines += [f"( {command} ) > {NOTES}/{number} 2>&1", f'echo "exit code $?" >> {NOTES}/{number}']
    return "\n".join(lines)


def prepare_home(run: Rig) -> None:
    """Secrets to look for."""
    for name in (".ssh/id_ed25519", ".gemini/login.json", "notes.txt"):
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


@each_cli
def test_orders_beyond_the_work_are_refused(cast: Cast) -> None:
    need_bubblewrap()
    brain = RoleBrain({})
    with rig(cast, brain) as run:
        prepare_home(run)
        first = Answer(PROGRAMMER_SUMMARY, before=(ordered(run), "echo 41 > answer.txt"))
        script: Script = {
            **FAIL_THEN_PASS,
            "programmer_summary.md": [first, *FAIL_THEN_PASS["programmer_summary.md"][1:]],
        }
        brain.script = script
        before = content(run.project)
        process = run.start(**POST, SANDBOX="on", WORKSPACE="worktree")
        (run.project / "run.pid").write_text(str(process.pid))
        code, said = run.finish(process)
        assert code == 0, said

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
