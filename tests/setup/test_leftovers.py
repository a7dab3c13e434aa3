"""`quintet clean`: what old runs have left goes, and a run that lives or could go on loses nothing."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from quintet.errors import QuintetError, RunError
from quintet.loop.decide.state import State, Status, TerminalRef
from quintet.loop.journal import RunFinished, RunStarted
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.state_file import name_state_file, save_state
from quintet.roles import ROLES
from quintet.server.state_folder import PROJECT
from quintet.server.terminal.direct_access import TerminalRow
from quintet.setup import leftovers
from quintet.setup.leftovers import MONTH_SECONDS, YOUNG_SECONDS, ended_reason, old_run_folders, terminal_leftovers
from tests.setup.conftest import Desk

OLD = time.time() + 2 * YOUNG_SECONDS
ANCIENT = time.time() + 2 * MONTH_SECONDS
RUN, NEWER = "20260101-000000-aaaaaa", "20260102-000000-bbbbbb"
SESSION = f"cao-{RUN}-0123"


@pytest.fixture(autouse=True)
def state_home(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", desk.env["XDG_STATE_HOME"])


@pytest.fixture
def places(desk: Desk) -> Path:
    root = Path(desk.env["XDG_STATE_HOME"]) / "quintet"
    for name in ("s", "t"):
        (root / name).mkdir(parents=True, mode=0o700)
    return root


def bound(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(str(path))
    return made


@pytest.fixture
def living(places: Path) -> Iterator[Path]:
    path = places / "s" / "cao-living"
    with bound(path) as listener:
        listener.listen()
        (places / "t" / "cao-living" / "0").mkdir(parents=True)
        yield path


def run_folder(wd: Path, run_id: str, status: str = "PASS") -> Path:
    folder = wd / ".tmp" / run_id
    folder.mkdir(parents=True)
    journal = Journal(folder / "journal.jsonl")
    journal.write(RunStarted(run_id=run_id, wd=str(wd), start_agent=ROLES[0].name, start_commit=""))
    if status:
        journal.write(RunFinished(status=Status(status), round=1))
    return folder


def saved(wd: Path, run_id: str, status: Status = Status.RUNNING) -> None:
    terminals = {role.name: TerminalRef("0" * 8, "codex") for role in ROLES}
    save_state(
        State(wd=str(wd), run_id=run_id, final_status=status, terminals=terminals), wd / ".tmp/quintet-state.json"
    )


def folder_of(places: Path, session: str, wd: Path | None = None) -> Path:
    folder = places / "t" / session
    (folder / "00000001").mkdir(parents=True)
    if wd:
        (folder / "00000001" / PROJECT).write_text(str(wd))
    return folder


def found_in(places: Path, now: float) -> list[str]:
    return [Path(one.where).relative_to(places).as_posix() for one in terminal_leftovers(now)]


def test_dead_sockets_and_their_folders_go_and_living_ones_stay(desk: Desk, places: Path, living: Path) -> None:
    run_folder(desk.wd, RUN)
    folder_of(places, SESSION, desk.wd)
    bound(places / "s" / SESSION).close()
    found = list(terminal_leftovers(OLD))
    assert [Path(one.where).relative_to(places).as_posix() for one in found] == [f"s/{SESSION}", f"t/{SESSION}"]
    for one in found:
        one.remove()
    assert sorted(path.name for path in places.glob("*/*")) == ["cao-living", "cao-living"]
    assert living.exists()


def test_a_run_that_lost_its_terminals_keeps_the_way_to_their_conversations(desk: Desk, places: Path) -> None:
    folder_of(places, SESSION, desk.wd)
    run_folder(desk.wd, RUN, "")
    saved(desk.wd, RUN)
    assert found_in(places, OLD) == []
    assert found_in(places, ANCIENT) == []
    saved(desk.wd, NEWER)
    assert found_in(places, OLD) == [f"t/{SESSION}"], "a newer run has taken its place"


def test_a_run_that_keeps_its_state_elsewhere_is_not_left_behind(desk: Desk, places: Path) -> None:
    """An older state at the usual place tells nothing of it."""
    folder_of(places, SESSION, desk.wd)
    run_folder(desk.wd, RUN, "")
    saved(desk.wd, "20250101-000000-cccccc", Status.PASS)
    elsewhere = desk.wd.parent / "state.json"
    save_state(State(wd=str(desk.wd), run_id=RUN), elsewhere)
    name_state_file(desk.wd, elsewhere)
    assert ended_reason(SESSION, desk.wd) == ""
    assert found_in(places, OLD) == []


def test_a_folder_that_is_needed_again_in_the_meantime_stays(desk: Desk, places: Path) -> None:
    folder = folder_of(places, SESSION, desk.wd)
    (found,) = terminal_leftovers(OLD)
    run_folder(desk.wd, RUN, "")
    saved(desk.wd, RUN)
    found.remove()
    assert folder.exists()


def test_a_run_that_has_left_no_other_trace_keeps_no_folder(desk: Desk, places: Path) -> None:
    folder_of(places, SESSION, desk.wd)
    assert found_in(places, OLD) == [f"t/{SESSION}"]


def test_what_is_of_no_known_run_goes_after_a_month(desk: Desk, places: Path) -> None:
    folder_of(places, "cao-mine", desk.wd)
    folder_of(places, SESSION)
    assert found_in(places, OLD) == []
    assert found_in(places, ANCIENT) == [f"t/{SESSION}", "t/cao-mine"]


def test_what_is_young_may_be_a_terminal_that_is_being_started(places: Path) -> None:
    bound(places / "s" / "cao-dead").close()
    (places / "t" / "cao-starting").mkdir()
    assert list(terminal_leftovers()) == []


@pytest.mark.parametrize("answer", ["y\n", "n\n"])
def test_it_asks_first(desk: Desk, places: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    (places / "t" / "cao-gone").mkdir()
    monkeypatch.setattr(leftovers, "YOUNG_SECONDS", -1.0)
    monkeypatch.setattr(leftovers, "MONTH_SECONDS", -1.0)
    monkeypatch.setattr(
        "quintet.cli.clean.sys", type("Terminal", (), {"stdin": type("In", (), {"isatty": lambda: True})})
    )
    done = desk.quintet("clean", answer=answer)
    assert done.exit_code == 0, done.output
    assert "cao-gone" in done.output
    assert (places / "t" / "cao-gone").exists() == (answer == "n\n")


def test_without_anybody_to_ask_nothing_goes_unless_told_so(
    desk: Desk, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "t" / "cao-gone").mkdir()
    monkeypatch.setattr(leftovers, "YOUNG_SECONDS", -1.0)
    monkeypatch.setattr(leftovers, "MONTH_SECONDS", -1.0)
    assert isinstance(desk.quintet("clean").exception, RunError)
    assert "1 thing would be removed" in desk.quintet("clean", "--dry-run").output
    assert (places / "t" / "cao-gone").exists()
    assert "1 thing removed" in desk.quintet("clean", "--yes").output
    assert not (places / "t" / "cao-gone").exists()
    assert desk.quintet("clean").output == "Nothing is left of old runs.\n"


def test_the_note_of_a_server_that_is_gone(desk: Desk) -> None:
    note = desk.wd / ".tmp/server.json"
    note.parent.mkdir()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for pid, stays in ((os.getpid(), True), (dead.pid, False)):
        note.write_text(f'{{"pid": {pid}}}')
        assert desk.quintet("clean", "--yes").exit_code == 0
        assert note.exists() == stays


def test_old_runs_go_by_choice_and_the_newest_stay(desk: Desk) -> None:
    for run_id in (RUN, NEWER):
        run_folder(desk.wd, run_id)
    desk.quintet("clean", "--yes")
    assert (desk.wd / ".tmp" / RUN).exists()
    desk.quintet("clean", "--runs", "--yes")
    assert not (desk.wd / ".tmp" / RUN).exists()
    assert (desk.wd / ".tmp" / NEWER).exists()


def test_a_run_goes_in_both_places_also_where_one_is_gone(desk: Desk) -> None:
    records = []
    for run_id in (RUN, NEWER):
        record = RunRecord(desk.wd, run_id)
        run_folder(desk.wd, run_id)
        record.open()
        records.append(record)
    shutil.rmtree(desk.wd / ".tmp" / RUN)
    assert RUN in desk.quintet("runs").output
    assert desk.quintet("report", RUN).exit_code == 0
    assert (records[0].archive / "report.md").exists()
    desk.quintet("clean", "--runs", "--yes")
    assert [path.exists() for record in records for path in (record.folder, record.archive)] == [
        False,
        False,
        True,
        True,
    ]


def test_the_record_of_another_project_with_the_same_run_stays(desk: Desk, tmp_path: Path) -> None:
    theirs = RunRecord(tmp_path / "theirs", RUN)
    theirs.open()
    run_folder(desk.wd, RUN)
    desk.quintet("clean", "--runs", "--keep", "0", "--yes")
    assert not (desk.wd / ".tmp" / RUN).exists()
    assert theirs.folder.exists()


def test_the_record_of_a_project_that_is_gone_goes_after_a_month(desk: Desk, tmp_path: Path) -> None:
    gone, here = RunRecord(tmp_path / "gone", RUN), RunRecord(desk.wd, NEWER)
    for record in (gone, here):
        record.open()
    assert list(leftovers.records_without_project()) == []
    (found,) = leftovers.records_without_project(time.time() + 31 * 86_400)
    found.remove()
    assert (gone.folder.exists(), here.folder.exists()) == (False, True)


def test_a_run_that_could_go_on_stays(desk: Desk) -> None:
    run_folder(desk.wd, RUN, "")
    saved(desk.wd, RUN)
    assert list(old_run_folders(desk.wd, 0)) == []
    saved(desk.wd, RUN, Status.PASS)
    assert len(list(old_run_folders(desk.wd, 0))) == 1


def test_a_run_that_is_removed_leaves_neither_state_nor_terminals(
    desk: Desk, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run would archive the state of the last one, and make its folder again for that."""
    ended: list[str] = []
    monkeypatch.setattr(leftovers, "end_session", ended.append)
    monkeypatch.setattr(leftovers, "list_terminals", list)
    run_folder(desk.wd, RUN)
    saved(desk.wd, RUN, Status.PASS)
    for name in (f"{RUN}-0123", f"{NEWER}-0123"):
        (places / "s" / name).touch()
    assert desk.quintet("clean", "--runs", "--keep", "0", "--yes").exit_code == 0
    assert not (desk.wd / ".tmp" / RUN).exists()
    assert not (desk.wd / ".tmp/quintet-state.json").exists()
    assert ended == [f"{RUN}-0123"]


def test_where_a_run_is_at_work_no_run_is_removed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folder(desk.wd, RUN)
    (found,) = old_run_folders(desk.wd, 0)
    monkeypatch.setattr(leftovers, "worker", lambda _: "process 4711")
    with pytest.raises(RunError, match="4711"):
        list(old_run_folders(desk.wd, 0))
    with pytest.raises(RunError):
        found.remove()
    assert folder.exists()


@pytest.mark.parametrize(
    ("status", "current", "why"),
    [
        ("PASS", RUN, "ended with PASS"),
        ("FAIL", RUN, "ended with FAIL"),
        ("", RUN, ""),
        ("", NEWER, "was left behind by a newer one"),
        ("", "", ""),
    ],
)
def test_terminals_are_left_over_only_where_their_run_is_over(desk: Desk, status: str, current: str, why: str) -> None:
    run_folder(desk.wd, RUN, status)
    if current:
        saved(desk.wd, current)
    assert ended_reason(SESSION, desk.wd) == why


def test_terminals_that_are_no_runs_are_nobodys_to_end(desk: Desk) -> None:
    assert ended_reason("cao-mine", desk.wd) == ""
    assert ended_reason(SESSION, desk.wd) == ""
    shutil.rmtree(desk.wd)
    assert ended_reason(SESSION, desk.wd) == "has no project any more"


def test_a_run_that_went_on_in_the_meantime_keeps_its_terminals(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr(leftovers, "end_session", ended.append)
    row = TerminalRow(SESSION, Path("x"), "1", "%1", "tester", "codex", "idle", str(desk.wd))
    monkeypatch.setattr(leftovers, "list_terminals", lambda: [row, replace(row, session="cao-mine")])
    run_folder(desk.wd, RUN, "")
    saved(desk.wd, NEWER)
    (found,) = leftovers.sessions_of_ended_runs()
    saved(desk.wd, RUN)
    found.remove()
    assert ended == []
    saved(desk.wd, NEWER)
    found.remove()
    assert ended == [SESSION]


def test_the_runs_of_another_project_behind_a_link_are_left_alone(desk: Desk, tmp_path: Path) -> None:
    other = run_folder(tmp_path / "other", RUN)
    (desk.wd / ".tmp").symlink_to(other.parent)
    done = desk.quintet("clean", "--runs", "--keep", "0", "--yes")
    assert (done.exit_code, other.exists()) == (0, True), done.output
    (desk.wd / ".tmp").unlink()
    (desk.wd / ".tmp").mkdir()
    (desk.wd / ".tmp" / NEWER).symlink_to(other)
    done = desk.quintet("clean", "--runs", "--keep", "0", "--yes")
    assert (done.exit_code, other.exists()) == (0, True), done.output


@pytest.mark.parametrize("name", [".tmp/quintet-state.json", ".tmp/server.json"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_would_be_read_for_ever_is_not_read(desk: Desk, name: str, kind: str) -> None:
    run_folder(desk.wd, RUN)
    path = desk.wd / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for words in (["clean", "--runs", "--yes"], ["status"], ["runs"], ["stop"]):
        assert isinstance(desk.quintet(*words).exception, QuintetError | SystemExit | None), words
