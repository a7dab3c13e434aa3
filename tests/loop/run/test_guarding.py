"""The guard in a run: the real command, a scripted server whose agents change files, and real git."""

import errno
import importlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from quintet.errors import TooLarge
from quintet.guard.restore import Restoring
from quintet.guard.store import Deadline
from quintet.loop.decide.steps import Ask, FollowUp
from quintet.loop.run import after_pass
from quintet.loop.run.guarding import TreeGuard
from quintet.roles import ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Role
from tests.stub.preloaded import run
from tests.stub.project import ONE_PASS
from tests.stub.replies import PASS, SMOOTH
from tests.stub.server import Turn
from tests.stub.simulated import KILLED, SimulatedProject, kill, simulated_project

CODE = "code\n"


def git(project: SimulatedProject, *words: str) -> str:
    env = {"PATH": project.env["PATH"], "HOME": str(project.home), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=project.wd, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SimulatedProject]:
    """A repository with one commit, and a change of the user's own that is not committed."""
    with simulated_project(tmp_path) as made:
        (made.home / "gitconfig").write_text("[user]\nname = T\nemail = t@localhost\n")
        (made.home / ".gitconfig").symlink_to("gitconfig")
        git(made, "init", "--quiet")
        (made.wd / "main.c").write_text(CODE)
        (made.wd / "check.sh").write_text("exit 1\n")
        (made.wd / "mine.txt").write_text("before\n")
        git(made, "add", "--all")
        git(made, "commit", "--quiet", "--message", "first")
        (made.wd / "mine.txt").write_text("the user's own\n")
        yield made


def acting(reply: str, *acts: Callable[[], object]) -> list[Turn]:
    """A turn for each act, the last of them for ever; None: nothing."""
    return [Turn(reply, work=0.03, act=lambda act=act: (act(), None)[1]) for act in acts]  # type: ignore[misc]


def nothing() -> None: ...


def edit(project: SimulatedProject, name: str = "main.c", text: str = "mended\n") -> Callable[[], object]:
    return lambda: (project.wd / name).write_text(text)


def tree(project: SimulatedProject) -> dict[str, str]:
    return {path.name: path.read_text() for path in project.wd.iterdir() if path.is_file()}


def paths(event: dict[str, Any]) -> list[str]:
    return [f"{path['change']} {path['path']}" for path in event["paths"]]


def test_a_tester_that_mends_the_code_is_asked_again_and_its_edit_is_gone(project: SimulatedProject) -> None:
    before = tree(project)
    project.stub.script[TESTER] = acting(PASS, edit(project), nothing)
    done = project.run()
    assert done.code == 0, done.text
    assert project.roles == [*ONE_PASS, "tester"]
    assert "- changed main.c" in project.stub.prompts[5][1]
    assert tree(project) == before
    (event,) = project.events("guard_violation")
    assert (event["role"], event["step"], event["undone"], event["serious"]) == ("tester", "1-1-tester", True, True)
    assert paths(event) == ["changed main.c"]
    assert event["file"] == "005-tester-undone.patch"
    assert "+mended" in (project.archive / event["file"]).read_text()
    assert project.state["undone"] == {}


def test_new_files_of_a_tester_go_and_its_verdict_stands(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = acting(PASS, edit(project, "out.txt"))
    assert project.run().code == 0
    assert project.roles == ONE_PASS
    (event,) = project.events("guard_violation")
    assert (event["serious"], paths(event)) == (False, ["created out.txt"])
    assert "out.txt" not in tree(project)


def test_the_analyst_writes_only_the_specification(project: SimulatedProject) -> None:
    def act() -> None:
        (project.wd / "openspec").mkdir()
        edit(project, "openspec/change.md")()
        edit(project)()

    project.stub.script[ANALYST] = acting(SMOOTH[ANALYST][0], act)
    assert project.run().code == 0
    assert (project.wd / "openspec/change.md").exists()
    assert tree(project)["main.c"] == CODE
    assert "- changed main.c" in project.stub.prompts[1][1], "its reviewer is told"
    assert project.roles == ONE_PASS


def test_the_programmer_changes_all_but_the_protected_files(project: SimulatedProject) -> None:
    def act() -> None:
        edit(project)()
        edit(project, "check.sh", "true\n")()
        edit(project, "quintet.json", "{}")()
        git(project, "add", "--all")
        git(project, "commit", "--quiet", "--message", "all of it")

    project.stub.script[PROGRAMMER] = acting(SMOOTH[PROGRAMMER][0], act)
    assert project.run(PROTECT="check.sh").code == 0
    assert tree(project) == {"main.c": "mended\n", "check.sh": "exit 1\n", "mine.txt": "the user's own\n"}
    assert git(project, "log", "--format=%s") == "all of it\nfirst", "its commit stays"
    (event,) = project.events("guard_violation")
    assert {"changed check.sh", "created quintet.json"} <= set(paths(event))
    assert "- changed check.sh" in project.stub.prompts[3][1], "its reviewer is told"


def test_what_everybody_may_change_is_left_alone(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = acting(PASS, edit(project, "main.c"))
    assert project.run(GUARD_ALLOW="*.c").code == 0
    assert project.events("guard_violation") == []
    assert tree(project)["main.c"] == "mended\n"


def test_an_honest_run_tells_of_nothing(project: SimulatedProject) -> None:
    before = git(project, "status", "--porcelain")
    project.stub.script[PROGRAMMER] = acting(SMOOTH[PROGRAMMER][0], edit(project))
    project.stub.script[TESTER] = acting(PASS, edit(project, ".tmp/scratch"))
    done = project.run()
    assert done.code == 0
    assert project.events("guard_violation") == []
    assert "warning" not in done.out
    assert "your own edits" in done.out, "the user is told what to mind"
    assert git(project, "status", "--porcelain").split("\n") == ["M main.c", f" {before}"]


def test_report_tells_and_changes_nothing(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = acting(PASS, edit(project))
    assert project.run(GUARD="report").code == 0
    assert project.roles == ONE_PASS
    (event,) = project.events("guard_violation")
    assert (event["undone"], event["file"], paths(event)) == (False, "", ["changed main.c"])
    assert tree(project)["main.c"] == "mended\n"


def test_off_looks_at_nothing(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = acting(PASS, edit(project))
    done = project.run(GUARD="off")
    assert done.code == 0
    assert project.events("guard_violation") == []
    assert not list(project.home.rglob("guard"))
    assert "edits" not in done.out


def test_without_a_repository_the_run_goes_on_and_says_so_once(tmp_path: Path) -> None:
    with simulated_project(tmp_path) as bare:
        done = bare.run()
        assert done.code == 0
        assert done.out.count("not guarded") == 1, done.out
        assert "the project is in no git repository" in done.out


def test_a_project_that_is_too_large_is_not_guarded_and_says_so_once(
    project: SimulatedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Over(Deadline):
        def __init__(self, seconds: float, room: Any = None) -> None:  # noqa: ARG002
            super().__init__(0.0)
            self._seconds = seconds

    monkeypatch.setattr("quintet.guard.scanning.Deadline", Over)
    project.stub.script[TESTER] = acting(PASS, edit(project))
    done = project.run()
    assert done.code == 0
    assert project.roles == ONE_PASS
    assert done.out.count("not guarded") == 1
    assert "takes more than 60 s" in done.out
    assert not list(project.home.glob(".local/state/quintet/records/*/guard")), "half a copy is of no use"


def test_a_snapshot_that_becomes_too_slow_leaves_no_verdict(
    project: SimulatedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 5: once a run is guarded, an agent that makes snapshots slow does not switch the guard off."""
    guarding = importlib.import_module("quintet.loop.run.guarding")
    take = guarding.take

    def take_too_long(*given: Any, **options: Any) -> object:
        if (project.wd / "slow").exists():
            raise TooLarge("a snapshot of the project takes more than 600 s")
        return take(*given, **options)

    monkeypatch.setattr(guarding, "take", take_too_long)
    project.stub.script[PROGRAMMER] = acting(SMOOTH[PROGRAMMER][-1], edit(project, ".gitignore", "slow\n"))
    project.stub.script[PEER_PROGRAMMER] = acting(SMOOTH[PEER_PROGRAMMER][-1], edit(project, "slow"))
    project.stub.script[TESTER] = acting(PASS, edit(project, "check.sh", "exit 0\n"))
    done = project.run(PROTECT="check.sh", VERIFY_CMD="sh check.sh", MAX_ROUNDS="1")
    assert done.code != 0, done.out
    assert "no verdict of it counts: a snapshot of the project takes more than 600 s" in done.out
    assert [event["verdict"] for event in project.events("test_judged")] == ["PASS", "FAIL"], "asked once more"


def test_an_undo_that_fails_leaves_no_verdict_until_it_is_done(
    project: SimulatedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Restoring._put

    def fail(self: Restoring, root: str, path: str, entry: Any) -> None:
        if path == "main.c" and not (project.wd / "mended").exists():
            raise OSError(errno.EIO, "Input/output error")
        put(self, root, path, entry)

    monkeypatch.setattr(Restoring, "_put", fail)
    project.stub.script[TESTER] = acting(PASS, edit(project), nothing, edit(project, "mended"), nothing)
    done = project.run()
    verdicts = [event["verdict"] for event in project.events("test_judged")]
    assert verdicts == ["PASS", "FAIL", "FAIL", "PASS"], "only the last one counts"
    assert "main.c could not be put back: Input/output error" in done.out
    assert (project.wd / "main.c").read_text() == CODE


def test_what_the_state_file_is_called_is_no_change_of_a_role(project: SimulatedProject) -> None:
    done = project.run(STATE_FILE="state.json")
    assert done.code == 0
    assert "guard_violation" not in next(project.wd.glob(".tmp/*/journal.jsonl")).read_text()


def snapshots(project: SimulatedProject) -> Path:
    return next(project.home.glob(".local/state/quintet/records/*/guard"))


def test_snapshots_are_private_outside_the_project_and_gone_at_the_end(project: SimulatedProject) -> None:
    seen: list[int] = []
    project.stub.script[TESTER] = acting(PASS, lambda: seen.append(snapshots(project).stat().st_mode & 0o777))
    git(project, "checkout", "--quiet", "mine.txt")
    assert project.run().code == 0
    assert seen == [0o700]
    assert not list(project.home.glob(".local/state/quintet/records/*/guard"))


def test_what_an_undo_leaves_in_the_store_is_private_too(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = acting(PASS, edit(project), nothing)
    assert project.run().code == 0
    store = snapshots(project)
    kept = {path.relative_to(store): path.stat().st_mode & 0o077 for path in store.rglob("*") if path.is_file()}
    assert Path("git/refs/patch/after") in kept
    assert Path("turn-left.json") not in kept
    assert {path for path, others in kept.items() if others and path.parts[:2] != ("git", "objects")} == set()


# -- between two turns


@contextmanager
def meddling(method: str, role: Role, deed: Callable[[], object]) -> Iterator[None]:
    """Let something happen when a method of the guard has been called for a role."""
    real = getattr(TreeGuard, method)

    def meddle(self: TreeGuard, step: Ask) -> object:
        found = real(self, step)
        if step.role is role:
            deed()
        return found

    with mock.patch.object(TreeGuard, method, meddle):
        yield


def test_what_changes_between_two_turns_counts_as_done_in_the_second(project: SimulatedProject) -> None:
    project.stub.script[PROGRAMMER] = acting(SMOOTH[PROGRAMMER][0], edit(project))
    with meddling("done", PROGRAMMER, edit(project, text="late")):
        assert project.run().code == 0
    assert tree(project)["main.c"] == "mended\n", "what the programmer has done stays"
    event = project.events("guard_violation")[0]
    assert (event["role"], paths(event)) == ("peer_programmer", ["changed main.c"])


def test_a_new_ignore_rule_of_the_programmer_holds_in_the_next_turn(project: SimulatedProject) -> None:
    project.stub.script[PROGRAMMER] = acting(SMOOTH[PROGRAMMER][0], edit(project, ".gitignore", "*.log\n"))
    project.stub.script[PEER_PROGRAMMER] = acting(SMOOTH[PEER_PROGRAMMER][0], edit(project, "out.log"))
    assert project.run().code == 0
    assert project.events("guard_violation") == []
    assert "out.log" in tree(project)


def test_what_a_check_writes_before_the_next_turn_is_nobodys_change(project: SimulatedProject) -> None:
    done = project.run(VERIFY_CMD="echo built >> built.txt", VERIFY_FIRST="1", RED_FIRST="off")
    assert done.code == 0, done.text
    assert project.events("guard_violation") == []
    assert tree(project)["built.txt"] == "built\nbuilt\n"


@pytest.mark.parametrize(("method", "role"), [("done", PROGRAMMER), ("before", PEER_PROGRAMMER)])
def test_a_kill_between_two_turns_blames_nobody(project: SimulatedProject, method: str, role: Role) -> None:
    """The snapshot of the second turn is not there yet, or it is."""
    project.stub.script[PROGRAMMER] = acting(SMOOTH[PROGRAMMER][0], edit(project))
    project.stub.script[PEER_PROGRAMMER] = acting(SMOOTH[PEER_PROGRAMMER][0], edit(project, "mine.txt"), nothing)
    with meddling(method, role, kill):
        assert project.run().code == KILLED
    done = project.run()
    assert done.code == 0, done.text
    assert tree(project)["main.c"] == "mended\n"
    assert tree(project)["mine.txt"] == "the user's own\n"
    (event,) = project.events("guard_violation")
    assert (event["role"], paths(event)) == ("peer_programmer", ["changed mine.txt"])


# -- kills


def kill_in(project: SimulatedProject, role: Role, number: int, act: Callable[[], object]) -> None:
    """Start a run, and kill it while a role is at work that has done something."""
    acted: list[object] = []
    first = Turn(SMOOTH[role][0], rest_after=1.0, act=lambda: acted.append(act()))
    project.stub.script[role] = [first, *project.stub.script[role]]
    project.stop_when(lambda: acted, signal.SIGKILL)
    assert len(project.stub.prompts) == number


def test_a_run_that_is_killed_in_a_turn_compares_with_the_snapshot_of_that_turn(project: SimulatedProject) -> None:
    kill_in(project, TESTER, 5, edit(project))
    done = project.run()
    assert done.code == 0, done.text
    assert tree(project)["main.c"] == CODE
    (event,) = project.events("guard_violation")
    assert (event["step"], paths(event)) == ("1-1-tester", ["changed main.c"])
    assert project.roles == [*ONE_PASS, "tester"], "its PASS does not count"


def test_what_the_user_edits_of_the_runs_own_files_between_two_starts_stays(project: SimulatedProject) -> None:
    kill_in(project, TESTER, 5, edit(project))
    edit(project, "quintet.json", "{}\n")()
    assert project.run().code == 0
    assert tree(project)["quintet.json"] == "{}\n"
    (event,) = project.events("guard_violation")
    assert paths(event) == ["changed main.c"]
    assert [path["path"] for path in event["outside"]] == ["quintet.json"]


def test_what_has_changed_since_a_stop_is_told_and_kept(project: SimulatedProject) -> None:
    project.stop_at(3, signal.SIGTERM)
    edit(project, "main.c", "by the user\n")()
    done = project.run()
    assert done.code == 0, done.text
    assert "changed since the run was stopped: changed main.c; kept as 003-resumed.patch" in done.out
    assert "+by the user" in (project.archive / "003-resumed.patch").read_text()
    assert tree(project)["main.c"] == "by the user\n", "the interrupted programmer may change it"
    assert project.events("guard_violation") == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_check_that_goes_on_later_sees_the_project_as_it_was_judged(
    project: SimulatedProject, end: signal.Signals
) -> None:
    """Whoever ends the run while it checks a PASS, and makes the check succeed, has gained nothing."""
    settings = {"VERIFY_CMD": "sh check.sh", "RED_FIRST": "off", "MAX_ROUNDS": "1"}

    def stop(*_: object) -> None:
        kill() if end is signal.SIGKILL else os.kill(os.getpid(), end)

    with mock.patch("quintet.loop.run.driver.run_checks", stop):
        assert project.run(**settings).code == (KILLED if end is signal.SIGKILL else 143)
    edit(project, "check.sh", "exit 0\n")()
    done = project.run(**settings)
    assert done.code == 1, done.text
    assert tree(project)["check.sh"] == "exit 1\n"
    assert "undone before the checks run on: changed check.sh; kept as 006-checks-undone.patch" in done.text
    assert "+exit 0" in (project.archive / "006-checks-undone.patch").read_text()
    assert project.roles == list(ONE_PASS), "no agent is asked twice"


def test_what_quintet_itself_has_committed_is_nobodys_change(project: SimulatedProject) -> None:
    """The process dies when the commit after the PASS is made, and nobody has written that down yet."""
    real = after_pass.carry_out

    def carry_out(step: FollowUp, *rest: Any) -> object:
        done = real(step, *rest)
        return kill() if step.mark else done

    with mock.patch.object(after_pass, "carry_out", carry_out):
        assert project.run(POST_GIT_COMMIT="1").code == KILLED
    assert git(project, "rev-list", "--count", "HEAD") == "2"
    done = project.run(POST_GIT_COMMIT="1")
    assert done.code == 0, done.text
    assert "changed since" not in done.out


def dying(project: SimulatedProject, place: str) -> None:
    """Start a run that dies when the guard comes to a certain place."""
    module, _, name = place.partition(".")
    with mock.patch.object(importlib.import_module(f"quintet.guard.{module}"), name, kill):
        assert project.run().code == KILLED


def test_a_new_run_completes_what_a_killed_one_was_undoing(project: SimulatedProject) -> None:
    project.stub.script[TESTER] = acting(PASS, edit(project), nothing)
    dying(project, "undo._carry_out")
    assert tree(project)["main.c"] == "mended\n"
    done = project.run(RESUME="0")
    assert done.code == 0
    assert "an undo that was interrupted is complete (1 change)" in done.out
    assert tree(project)["main.c"] == CODE


def test_an_agent_that_deletes_the_snapshots_is_caught_all_the_same(project: SimulatedProject) -> None:
    def act() -> None:
        shutil.rmtree(snapshots(project))
        edit(project)()

    project.stub.script[TESTER] = acting(PASS, act, nothing)
    done = project.run()
    assert done.code == 0, done.text
    assert project.roles == [*ONE_PASS, "tester"]
    assert tree(project)["main.c"] == CODE


# -- what was not committed before the run


def restore(project: SimulatedProject) -> tuple[int, str]:
    done = run(["restore"], project.env, project.wd)
    return done.returncode, done.stdout + done.stderr


def test_what_was_not_committed_before_a_run_can_be_brought_back(project: SimulatedProject) -> None:
    before, head = tree(project), git(project, "rev-parse", "HEAD")

    def act() -> None:
        edit(project, "mine.txt", "lost\n")()
        edit(project, "new.c")()
        git(project, "add", "--all")
        git(project, "commit", "--quiet", "--message", "all of it")

    project.stub.script[PROGRAMMER] = acting(SMOOTH[PROGRAMMER][0], act)
    done = project.run()
    assert done.code == 0
    assert "what is not committed here is kept as it is now" in done.out
    assert tree(project)["mine.txt"] == "lost\n"
    code, said = restore(project)
    assert code == 0, said
    assert (tree(project), git(project, "rev-parse", "HEAD")) == (before, head)
    assert git(project, "status", "--porcelain") == "M mine.txt"
    assert "+lost" in (project.archive / "before-restore.patch").read_text()
    assert restore(project) == (0, f"Nothing has changed since the run {project.archive.name} began.\n")


def test_a_clean_project_needs_nothing_kept(project: SimulatedProject) -> None:
    git(project, "checkout", "--quiet", "mine.txt")
    assert "is kept as it is now" not in project.run().out
    code, said = restore(project)
    assert code == 1
    assert "it began without uncommitted changes" in said


@pytest.mark.parametrize("place", ["archive.keep", "undo._carry_out"])
def test_a_kill_in_the_middle_of_an_undo_hides_nothing(project: SimulatedProject, place: str) -> None:
    """The process dies when the guard comes to a certain place; the next start finishes the undo."""
    project.stub.script[TESTER] = acting(PASS, edit(project), nothing)
    dying(project, place)
    assert project.state["dispatched"] == "1-1-tester"
    done = project.run()
    assert done.code == 0, done.text
    assert tree(project)["main.c"] == CODE
    (event,) = project.events("guard_violation")
    assert paths(event) == ["changed main.c"]
    assert "+mended" in (project.archive / event["file"]).read_text()
    assert project.roles == [*ONE_PASS, "tester"], "its PASS does not count, although nothing was left to undo"


def test_a_snapshot_is_found_that_has_lost_its_new_name(project: SimulatedProject) -> None:
    """A power failure may bring back the name that a file had before: here that of the turn before."""
    kill_in(project, PEER_PROGRAMMER, 4, edit(project))
    (snapshot,) = snapshots(project).glob("turn-*.json")
    snapshot.rename(snapshot.with_name("turn-left.json"))
    done = project.run()
    assert done.code == 0, done.text
    (event,) = project.events("guard_violation")
    assert (event["unknown"], paths(event)) == (False, ["changed main.c"])
    assert tree(project)["main.c"] == CODE


def test_turns_that_change_nothing_share_one_snapshot(project: SimulatedProject) -> None:
    seen: list[tuple[str, int]] = []

    def look() -> None:
        (snapshot,) = snapshots(project).glob("turn-*.json")
        seen.append((snapshot.stem, snapshot.stat().st_ino))

    project.stub.script[PEER_PROGRAMMER] = acting(SMOOTH[PEER_PROGRAMMER][0], look)
    project.stub.script[TESTER] = acting(PASS, look)
    assert project.run().code == 0
    (first, inode), (second, other) = seen
    assert (first, second) == ("turn-1-1-programmer_review", "turn-1-1-tester")
    assert inode == other


@pytest.mark.parametrize(
    "names", [["turn-*.json"], ["turn-*.json", "contents"], ["turn-*.json", "contents", "table-*"]]
)
def test_damaged_snapshots_do_not_switch_the_guard_off(project: SimulatedProject, names: list[str]) -> None:
    kill_in(project, TESTER, 5, edit(project))
    for name in names:
        for path in snapshots(project).glob(name):
            path.write_text("x\n")
    done = project.run(MAX_ROUNDS="1")
    assert done.code == 1, done.text
    (event,) = project.events("guard_violation")
    assert (event["role"], event["unknown"], event["serious"]) == ("tester", True, True)
    assert project.events("test_judged")[-1]["verdict"] == "FAIL"
    assert "are not guarded" not in done.text


def test_an_agent_that_damages_the_snapshots_is_guarded_in_later_turns_too(project: SimulatedProject) -> None:
    def damage() -> None:
        for path in snapshots(project).iterdir():
            if path.is_file():
                path.write_text("x\n")
        edit(project)()

    project.stub.script[TESTER] = acting(PASS, damage, edit(project, text="mended again\n"))
    done = project.run(MAX_ROUNDS="2")
    assert done.code == 1, done.text
    assert "put aside as guard-damaged-1" in done.text
    assert "are not guarded" not in done.text
    assert project.events("guard_violation")[-1]["undone"]
    assert [event["verdict"] for event in project.events("test_judged")][-1] == "FAIL"
