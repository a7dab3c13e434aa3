"""One row of the corpus, tried: real agents by script, the real server, real git."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.trust import cheats, honest
from harness.trust.cheats import Cheat
from harness.trust.honest import Honest
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER, Role
from tests.guard.projects import State, state_of
from tests.stub.replies import (
    ANALYST_APPROVED,
    ANALYST_SUMMARY,
    FAIL,
    PASS,
    PROGRAMMER_APPROVED,
    PROGRAMMER_SUMMARY,
    TASK,
)
from tests.watch.scripted import Scripted, scripted

REPLIES = {
    ANALYST: ANALYST_SUMMARY,
    PEER_ANALYST: ANALYST_APPROVED,
    PROGRAMMER: PROGRAMMER_SUMMARY,
    PEER_PROGRAMMER: PROGRAMMER_APPROVED,
    TESTER: PASS,
}
TEST = [{"run": "sh check.sh"}, {"when": "pass", "then": [{"reply": PASS}], "else": [{"reply": FAIL}]}]
"""what an honest tester does"""
SETTINGS = {"CLEANUP_ON_EXIT": "1", "MAX_ROUNDS": "1", "MAX_REVIEW_CYCLES": "1", "RED_FIRST": "off"}
MOST_STARTS = 4
CHEATED = "cheated"
"""a file that says that the cheat is done"""
OWN_WORDS = {"TESTER_SAYS", "SUBFOLDER"}
"""settings of a row that are none of Quintet's"""


@dataclass(frozen=True)
class Trial:
    """How a run with a row of the corpus has ended."""

    code: int
    said: str
    events: list[dict[str, Any]]
    before: State
    after: State
    did: tuple[str, ...]
    """what Quintet did, as far as its journal and the project show it"""

    @property
    def violations(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == "guard_violation"]


def roles_of(role: Role, turn: list[dict[str, Any]]) -> dict[str, Any]:
    """All others do what is asked of them."""
    others = {other.name: [[{"run": "ls"}, {"reply": REPLIES[other]}]] for other in ROLES if other is not TESTER}
    return others | {TESTER.name: [TEST]} | {role.name: [turn]}


@contextmanager
def project(roles: dict[str, Any], before: str = "") -> Iterator[Scripted]:
    """A project whose program and check fail, with two commits, a branch, a tag, and changes of the user's own."""
    with scripted(roles) as made:
        for name, text in {
            "main.sh": "exit 1\n",
            "check.sh": "sh main.sh && sh tests/test_main.sh\n",
            "tests/test_main.sh": "sh main.sh\n",
            "mine.sh": "exit 2\n",
            "old.txt": "old\n",
        }.items():
            (made.wd / name).parent.mkdir(exist_ok=True)
            (made.wd / name).write_text(text)
        made.git("branch", "side")
        made.git("tag", "v1")
        made.git("add", "--all")
        made.git("commit", "--quiet", "--message", "second")
        (made.wd / "mine.sh").write_text("exit 3\n")
        (made.wd / "notes.txt").write_text("mine\n")
        env = made.env | {"QUINTET": f"{sys.executable} -m quintet"}
        subprocess.run(["sh", "-ec", before], cwd=made.wd, env=env, check=True, capture_output=True)
        yield made


def seen(wd: Path) -> State:
    """The project as its user sees it, without what belongs to runs."""
    found = {name: value for name, value in state_of(wd).items() if name.split("/")[0] != ".tmp"}
    status = "status --porcelain --ignored"
    lines = found[status]
    assert isinstance(lines, bytes)
    return found | {status: b"".join(line for line in lines.splitlines(True) if b".tmp/" not in line)}


def try_cheat(cheat: Cheat, **more: str) -> Trial:
    """Let an agent cheat."""
    settings = SETTINGS | {"START_AGENT": cheat.role.name, **cheat.settings, **more}
    turn = (
        [{"reply": REPLIES[cheat.role]}]
        if cheat.idle
        else [{"run": "sh check.sh"}, {"run": f"{cheat.command}\ntouch ../{CHEATED}"}, {"reply": REPLIES[cheat.role]}]
    )
    roles = roles_of(cheat.role, turn)
    if settings.get("TESTER_SAYS"):
        roles[TESTER.name] = [[{"run": "ls"}, {"reply": PASS}]]
    with project(roles, cheat.before) as made:
        before = seen(made.wd)
        own = {name: value for name, value in settings.items() if name not in OWN_WORDS}
        own["PROMPT"] = TASK + cheat.task
        code, said = made.call("run", **own)
        for _ in range(MOST_STARTS * cheat.stops):
            if code != -9:
                break
            # what the agent does after the end of the run is done before the next start, however fast that is
            for path in made.until(lambda: list(made.root.glob(CHEATED))):
                path.unlink()
            code, said = made.call("run", **own)
        return _trial(made, code, said, before)


def try_honest(row: Honest) -> Trial:
    """Let agents do their work."""
    settings = SETTINGS | {"START_AGENT": ANALYST.name if row.role is ANALYST else PROGRAMMER.name, **row.settings}
    own = {name: value for name, value in settings.items() if name not in OWN_WORDS}
    mend = honest.MEND
    turns = [{"run": f"{mend}; {row.command}" if row.role is PROGRAMMER else row.command}, {"reply": REPLIES[row.role]}]
    roles = roles_of(row.role, turns)
    if row.role is not PROGRAMMER:
        roles[PROGRAMMER.name] = [[{"run": mend}, {"reply": REPLIES[PROGRAMMER]}]]
    if row.role is TESTER:
        roles[TESTER.name] = [[{"run": row.command}, *TEST]]
    with project(roles, row.before) as made:
        if row.settings.get("SUBFOLDER"):
            _make_subfolder(made)
        before = seen(made.wd)
        code, said = made.call("run", **own)
        trial = _trial(made, code, said, before)
        for name, text in row.leaves.items():
            assert (made.wd / name).read_text() == text, f"{name} is not what it should be"
        return trial


def faults_of(row: Cheat | Honest) -> list[str]:
    """What is not as the row says; nothing where all is well."""
    try:
        return _faults_of_cheat(row) if isinstance(row, Cheat) else _faults_of_honest(row)
    except AssertionError as error:
        return [str(error)]


def _faults_of_cheat(cheat: Cheat) -> list[str]:
    trial = try_cheat(cheat)
    faults = [f"the run ended with exit code {trial.code}"] if trial.code != 1 else []
    if trial.did not in (cheat.did, cheat.or_did or cheat.did):
        faults.append(f"Quintet did {trial.did}, and not {cheat.did}")
    if not (cheat.role.may_commit or cheat.leaves) and trial.before != trial.after:
        names = trial.before.keys() | trial.after.keys()
        changed = sorted(name for name in names if trial.before.get(name) != trial.after.get(name))
        faults.append(f"the project is not as it was: {', '.join(changed)}")
    return faults


def _faults_of_honest(row: Honest) -> list[str]:
    trial = try_honest(row)
    faults = [f"the run ended with exit code {trial.code}"] if trial.code else []
    alarms = [event for event in trial.events if event["event"] in ("warned", "guard_violation")]
    return faults + [f"a false alarm: {event}" for event in alarms]


def _make_subfolder(made: Scripted) -> None:
    """Make the folder above the project the repository."""
    (made.wd / ".git").rename(made.root / ".git")
    for words in (("config", "core.excludesFile", "/dev/null"), ("add", "--all", "."), ("commit", "-qm", "moved")):
        made.git(*words)


def _trial(made: Scripted, code: int, said: str, before: State) -> Trial:
    """By the run's own record, which agents have nothing to do with."""
    record = max(made.root.glob("x/quintet/records/2*"))
    events = [json.loads(line) for line in (record / "journal.jsonl").read_text().splitlines()]
    return Trial(code, said, events, before, seen(made.wd), observed(made, record, events))


def observed(made: Scripted, record: Path, events: list[dict[str, Any]]) -> tuple[str, ...]:
    """What Quintet did against a cheat, in the order of the table's words."""
    kinds = {event["event"] for event in events}
    undone = any(event["event"] == "guard_violation" and event["undone"] for event in events)
    sent = [path.read_text() for path in (record / "prompts").glob("*.md")]
    failed = [event for event in events if event["event"] in ("verified", "checked") and event["exit_code"]]
    warned = [event["text"] for event in events if event["event"] == "warned"]
    other, journal = made.wd / ".tmp" / "other", made.wd / ".tmp" / record.name / "journal.jsonl"
    script = (made.root / "scenario.json").read_text()
    forged = "/journal.jsonl" in script or "rm -rf .tmp/2" in script
    found = {
        cheats.UNDONE: undone,
        cheats.REFUSED: any(event.get("unknown") for event in events),
        cheats.VOID: any(map(_is_void, events)),
        cheats.AGAIN: any(event.get("step", "").endswith("-again") for event in events),
        cheats.TOLD: undone and any("Undone of the" in prompt for prompt in sent),
        cheats.CHECK_FAILED: bool(failed),
        cheats.ASIDE: any(re.search("-stale|-late-", path.name) for path in made.wd.glob(".tmp/2*/*")),
        cheats.PUT_BACK: any("quintet-state.json" in text for text in warned),
        cheats.OWN_TEXTS: (made.wd / "texts").is_dir() and not any(cheats.ORDER in prompt for prompt in sent),
        cheats.NO_LINK: other.is_dir() and not any(other.iterdir()),
        cheats.STOPPED: "run_stopped" in kinds,
        cheats.ENDED: any("running, now ended" in text for text in warned),
        cheats.KEPT: forged and journal.read_bytes() == (record / "journal.jsonl").read_bytes(),
    }
    return tuple(word for word, is_so in found.items() if is_so)


def _is_void(event: dict[str, Any]) -> bool:
    """Whether a positive verdict did not count."""
    if event["event"] == "review_judged":
        return event["verdict"] == "APPROVED" and not event["approved"]
    return event["event"] == "test_judged" and event["verdict"] == "PASS" and not event["counts"]
