"""The record of a run in the user's state directory: what a run goes by, whatever becomes of the copies."""

import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from quintet import files
from quintet.config import Settings
from quintet.layout import JOURNAL, STATE, STATE_FILE, record_folder, run_folder, user_state_folder
from quintet.loop.decide.state import State, Status
from quintet.loop.decide.steps import Ask, Replied, Stopped
from quintet.loop.journal import Noted, RunStarted
from quintet.loop.record.journal_file import Journal
from quintet.loop.record.run_record import RunRecord, recorded, recorded_runs
from quintet.loop.record.saved_state import Difference, load_project_state, put_right, read_saved
from quintet.loop.record.state_file import load_state, save_state
from quintet.roles import ANALYST
from tests.stub.fake import HeardStore, store_in

STEP = Ask(ANALYST, 1)


def begun(wd: Path) -> HeardStore:
    """A run with a state, a journal, a prompt and a reply."""
    store = store_in(wd)
    store.emit(RunStarted(run_id=store.state.run_id, wd=str(wd), start_agent="analyst"))
    store.responses.keep_prompt("001-analyst", "the prompt")
    store.responses.keep(ANALYST, 1, "the reply")
    store.fold(STEP, Replied("the reply", sequence=1))
    return store


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_in_its_record_and_the_archive_is_a_copy(tmp_path: Path) -> None:
    store = begun(tmp_path)
    record, copies = tree(store.record.folder), tree(store.record.archive)
    assert record.pop("project") == str(tmp_path).encode()
    assert record.pop(STATE) == (tmp_path / STATE_FILE).read_bytes()
    assert sorted(record) == ["001-analyst.md", JOURNAL, "prompts/001-analyst.md"]
    assert copies == record


def test_the_record_is_private(tmp_path: Path) -> None:
    store = begun(tmp_path)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in user_state_folder().rglob("*")}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}
    assert store.record.folder in found


@pytest.mark.parametrize("harm", ["all removed", "archive removed", "some removed", "emptied"])
def test_what_is_deleted_of_the_copies_is_put_back(tmp_path: Path, harm: str) -> None:
    store = begun(tmp_path)
    store.restore_deleted_files()
    before, state, archive = tree(store.record.archive), (tmp_path / STATE_FILE).read_bytes(), store.record.archive
    match harm:
        case "all removed":
            shutil.rmtree(tmp_path / ".tmp")
        case "archive removed":
            shutil.rmtree(archive)
        case "some removed":
            (archive / JOURNAL).unlink()
            (archive / "prompts" / "001-analyst.md").unlink()
        case "emptied":
            files.write(archive / JOURNAL, b"")
            files.write(archive / "001-analyst.md", b"")
    store.restore_deleted_files()
    assert tree(store.record.archive) == before
    found, wanted = load_state(tmp_path / STATE_FILE), load_state(store.record.state)
    assert state
    assert found == wanted


def test_a_journal_that_lost_its_copy_is_copied_with_the_next_event(tmp_path: Path) -> None:
    store = begun(tmp_path)
    for harm in (Path.unlink, lambda path: path.write_bytes(b"torn"), lambda path: path.write_bytes(b"more\n" * 999)):
        harm(store.record.archive / JOURNAL)
        store.note("after it")
        assert (store.record.archive / JOURNAL).read_bytes() == store.record.journal.read_bytes()
    assert len([event for event in Journal(store.record.journal).read() if isinstance(event, Noted)]) == 3


def test_a_link_in_the_place_of_a_copy_is_not_written_through(tmp_path: Path) -> None:
    store, other = begun(tmp_path), tmp_path / "other"
    other.write_text("mine")
    (store.record.archive / JOURNAL).unlink()
    (store.record.archive / JOURNAL).symlink_to(other)
    store.note("after it")
    store.restore_deleted_files()
    assert other.read_text() == "mine"
    assert [type(event) for event in Journal(store.record.journal).read()] == [RunStarted, Noted]


def test_a_run_from_elsewhere_brings_its_archive_along(tmp_path: Path) -> None:
    archive = run_folder(tmp_path, "theirs")
    Journal(archive / JOURNAL).write(Noted(text="earlier"))
    files.write(archive / "001-analyst.md", "the reply")
    (archive / "002-peer_analyst.md").symlink_to(tmp_path / "elsewhere")
    RunRecord(tmp_path, "theirs").open()
    assert sorted(tree(record_folder("theirs"))) == ["001-analyst.md", JOURNAL, "project"]


def test_another_projects_record_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    mine, theirs = RunRecord(tmp_path / "mine", "run"), RunRecord(tmp_path / "theirs", "run")
    mine.open()
    Journal.of(mine).write(Noted(text="mine"))
    assert (mine.is_known, mine.is_taken) == (True, False)
    assert (theirs.is_known, theirs.is_taken) == (False, True)
    assert recorded(mine.archive) == mine.folder
    assert recorded(theirs.archive) == theirs.archive
    assert (recorded_runs(mine.wd), recorded_runs(theirs.wd)) == (["run"], [])


# -- the state file


@pytest.fixture
def stopped(tmp_path: Path) -> HeardStore:
    store = begun(tmp_path)
    store.fold(STEP, Stopped("why"))
    return store


def difference(store: HeardStore) -> Difference:
    saved = read_saved(store.settings.state_file, store.settings.wd)
    assert saved.state is not None
    assert replace(saved.state, updated_at="") == store.state
    return saved.difference


def test_the_runs_own_copy_counts(stopped: HeardStore) -> None:
    path = stopped.settings.state_file
    text = path.read_text(encoding="utf-8")
    assert difference(stopped) is Difference.NONE
    for edited in (
        text.replace("why", "how"),
        text.replace('"run_id": "run', '"run_id": "ran'),
        "{}",
        "no state",
        "[]",
    ):
        path.write_text(edited)
        assert difference(stopped) is Difference.CHANGED
    save_state(State(run_id="another"), path)
    assert difference(stopped) is Difference.CHANGED
    for content in (b"", None):
        path.unlink() if content is None else path.write_bytes(content)
        assert difference(stopped) is Difference.MISSING
    path.mkdir()
    assert difference(stopped) is Difference.CHANGED


def test_a_changed_file_is_kept_and_told(stopped: HeardStore) -> None:
    path, told = stopped.settings.state_file, list[str]()
    own = path.read_bytes()
    path.write_text("changed")
    put_right(read_saved(path, stopped.settings.wd), path, stopped.settings.wd, told.append)
    assert path.read_bytes() == own
    assert path.with_name("quintet-state.json.changed-1").read_text() == "changed"
    assert "somebody has changed it" in told[0]
    path.unlink()
    put_right(read_saved(path, stopped.settings.wd), path, stopped.settings.wd, told.append)
    assert path.read_bytes() == own
    assert "was gone" in told[1]
    put_right(read_saved(path, stopped.settings.wd), path, stopped.settings.wd, told.append)
    assert len(told) == 2


def test_a_kill_between_the_two_writes_is_nobodys_change(stopped: HeardStore) -> None:
    path = stopped.settings.state_file
    before = path.read_bytes()
    stopped.fold(STEP, Stopped("later"))
    path.write_bytes(before)
    assert difference(stopped) is Difference.OLDER
    told: list[str] = []
    put_right(read_saved(path, stopped.settings.wd), path, stopped.settings.wd, told.append)
    assert told == []
    stopped.fold(STEP, Stopped("next"))
    assert path.read_bytes() == stopped.record.state.read_bytes()


def test_a_copy_that_could_not_be_written_twice_is_nobodys_change(
    stopped: HeardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of the project is full, the user's is not: the run is stopped, which it wants to save as well."""
    path, write = stopped.settings.state_file, files.write

    def full(target: Path, *words: object, **options: object) -> None:
        if target == path:
            raise OSError(28, "No space left on device", str(target))
        write(target, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "write", full)
    for reason in ("first", "second"):
        with pytest.raises(Exception, match="No space left"):
            stopped.fold(STEP, Stopped(reason))
    assert difference(stopped) is Difference.OLDER


def test_a_state_whose_run_is_not_known_is_read_as_it_is(tmp_path: Path) -> None:
    save_state(State(run_id="theirs", prompt="their task"), tmp_path / STATE_FILE)
    saved = read_saved(tmp_path / STATE_FILE, tmp_path)
    assert (saved.state.prompt if saved.state else "", saved.own) == ("their task", b"")


def test_a_record_that_cannot_be_read_leaves_the_file(stopped: HeardStore) -> None:
    stopped.record.state.write_text("broken")
    saved = read_saved(stopped.settings.state_file, stopped.settings.wd)
    assert (saved.state.last_error if saved.state else "", saved.difference) == ("why", Difference.NONE)


def test_a_finished_run_is_not_put_back_but_its_verdict_stands(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.state = replace(store.state, final_status=Status.FAIL)
    store.fold(STEP, Stopped("over"))
    text = store.settings.state_file.read_text(encoding="utf-8")
    store.settings.state_file.write_text(text.replace("FAIL", "PASS"))
    saved = read_saved(store.settings.state_file, tmp_path)
    assert (saved.state.final_status if saved.state else "", saved.difference) == (Status.FAIL, Difference.CHANGED)
    store.settings.state_file.unlink()
    assert load_project_state(tmp_path) is None


def test_a_new_folder_under_an_old_name_is_another_project(tmp_path: Path) -> None:
    wd = tmp_path / "project"
    wd.mkdir()
    begun(wd)
    wd.rename(tmp_path / "moved")
    wd.mkdir()
    assert load_project_state(wd) is None


def test_each_state_file_has_a_run_of_its_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        settings = replace(Settings(), wd=tmp_path, state_file=tmp_path / f"{name}.json")
        HeardStore(settings, State(run_id=name)).fold(STEP, Stopped(name))
        settings.state_file.unlink()
    for name in ("one", "two"):
        saved = read_saved(tmp_path / f"{name}.json", tmp_path)
        assert saved.state is not None
        assert saved.state.last_error == name
