"""Response files and their archive. What is never taken as a reply is in test_handoff.py."""

import os
import shutil
from pathlib import Path

import pytest

from quintet.errors import RunError
from quintet.loop.record.responses import Responses
from quintet.loop.record.run_record import RunRecord
from quintet.roles import ANALYST, PEER_PROGRAMMER, ROLES, TESTER


@pytest.fixture(params=[False, True], ids=["", "sandboxed"])
def responses(tmp_path: Path, request: pytest.FixtureRequest) -> Responses:
    made = Responses(RunRecord(tmp_path, "run-1"), sandboxed=request.param)
    made.record.open()
    made.ensure_response_dir()
    return made


def test_the_directory_is_made_with_its_parents_and_ignores_itself(tmp_path: Path) -> None:
    assert not Responses(RunRecord(tmp_path, "r")).ready
    for _ in range(2):
        Responses(RunRecord(tmp_path, "r")).ensure_response_dir()
    assert Responses(RunRecord(tmp_path, "r")).ready
    assert (tmp_path / ".tmp" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(("there", "then"), [("mine\n", "mine\n"), ("", "*\n")], ids=["the user's own", "torn"])
def test_a_gitignore_is_written_again_only_where_it_was_torn(tmp_path: Path, there: str, then: str) -> None:
    """Killed, or out of room, between making the file and filling it."""
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / ".gitignore").write_text(there)
    Responses(RunRecord(tmp_path, "r")).ensure_response_dir()
    assert (tmp_path / ".tmp" / ".gitignore").read_text() == then


@pytest.mark.parametrize("kind", ["link", "dangling", "directory"])
def test_what_is_no_file_makes_way_and_is_kept(responses: Responses, tmp_path: Path, kind: str) -> None:
    path = responses.path_of(ANALYST)
    (tmp_path / "elsewhere").write_text("text")
    for number in (1, 2):
        if kind == "directory":
            path.mkdir()
        else:
            path.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
        kept = responses.clear_irregular(ANALYST)
        folder = responses.record.folder if responses.sandboxed else responses.archive
        assert kept == folder / f"analyst-irregular-{number}"
        assert os.path.lexists(kept)
        assert not os.path.lexists(path)
    assert (tmp_path / "elsewhere").read_text() == "text"


def test_a_file_or_nothing_stays_where_it_is(responses: Responses) -> None:
    assert responses.clear_irregular(ANALYST) is None
    responses.path_of(ANALYST).touch()
    assert responses.clear_irregular(ANALYST) is None
    assert responses.path_of(ANALYST).exists()


def test_at_the_end_late_responses_go_to_the_archive(responses: Responses) -> None:
    responses.path_of(ANALYST).write_text("late")
    responses.path_of(TESTER).write_text("later")
    assert responses.sweep(7) == 9
    assert (responses.archive / "008-analyst-stale.md").read_text() == "late"
    assert (responses.archive / "009-tester-stale.md").read_text() == "later"
    assert responses.sweep(9) == 9


def test_a_place_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".tmp").write_text("")
    with pytest.raises(RunError, match="cannot be made"):
        Responses(RunRecord(tmp_path, "r")).ensure_response_dir()


def test_a_stale_file_is_moved_to_the_archive(responses: Responses) -> None:
    responses.path_of(ANALYST).write_text("old")
    moved = responses.clear_stale_response(ANALYST, 7)
    assert moved == responses.archive / "007-analyst-stale.md"
    assert moved is not None
    assert moved.read_text() == "old"
    assert not responses.path_of(ANALYST).exists()


@pytest.mark.parametrize("kind", ["directory", "symlink", "dangling"])
def test_whatever_is_in_the_way_is_moved(responses: Responses, kind: str, tmp_path: Path) -> None:
    path, outside = responses.path_of(TESTER), tmp_path / "outside"
    if kind == "directory":
        (path / "inner").mkdir(parents=True)
    else:
        if kind == "symlink":
            outside.write_text("not ours")
        path.symlink_to(outside)
    moved = responses.clear_stale_response(TESTER, 1)
    assert moved is not None
    assert os.path.lexists(moved)
    assert not os.path.lexists(path)
    assert kind != "symlink" or outside.read_text() == "not ours"


def test_the_archive_may_be_gone(responses: Responses) -> None:
    responses.archive.rmdir()
    responses.path_of(ANALYST).write_text("old")
    assert responses.clear_stale_response(ANALYST, 1)
    assert responses.keep(ANALYST, 2, "new").read_text() == "new"


def test_a_kept_reply_has_its_sequence_and_is_private(responses: Responses) -> None:
    kept = responses.keep(PEER_PROGRAMMER, 12, "text ü \udce9\n")
    assert kept.name == "012-programmer_review.md"
    assert kept.read_text(encoding="utf-8") == "text ü ?\n"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_thousand_replies_keep_their_order(responses: Responses) -> None:
    assert responses.keep(ANALYST, 1000, "x").name == "1000-analyst.md"


def test_dropping_twice_is_no_error(responses: Responses) -> None:
    responses.path_of(ANALYST).write_text("x")
    responses.drop(ANALYST)
    responses.drop(ANALYST)
    assert not responses.path_of(ANALYST).exists()


def test_file_time_is_the_clock_of_the_files(responses: Responses) -> None:
    before = responses.file_time(ANALYST)
    path = responses.path_of(ANALYST)
    path.write_text("x")
    assert responses.look(ANALYST, before) is not None
    assert responses.look(ANALYST, path.stat().st_mtime_ns + 1) is None


def test_a_look_tells_one_file_from_another(responses: Responses) -> None:
    path = responses.path_of(ANALYST)
    path.write_text("one")
    first = responses.look(ANALYST, 0)
    assert responses.look(ANALYST, 0) == first
    path.write_text("longer")
    assert responses.look(ANALYST, 0) != first


def test_a_link_is_never_read(responses: Responses, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    responses.path_of(ANALYST).symlink_to(tmp_path / "secret")
    assert responses.look(ANALYST, 0) is None
    assert responses.read(ANALYST) is None
    responses.path_of(TESTER).mkdir()
    assert responses.look(TESTER, 0) is None


def test_in_a_sandbox_each_role_has_a_folder_of_its_own(tmp_path: Path) -> None:
    made = Responses(RunRecord(tmp_path, "run-1"), sandboxed=True)
    made.record.open()
    made.ensure_response_dir()
    assert made.ready
    folders = {made.tmp_of(role) for role in ROLES}
    assert len(folders) == len(ROLES)
    assert not any(folder.is_relative_to(tmp_path) for folder in folders)
    assert {(folder / ".gitignore").read_text() for folder in folders} == {"*\n"}
    (made.tmp_of(ANALYST) / "agent-responses" / TESTER.response_file).write_text("RESULT: PASS")
    assert made.look(TESTER, 0) is None
    shutil.rmtree(made.tmp_of(TESTER) / "agent-responses")
    assert not made.ready


def test_in_a_sandbox_a_kept_prompt_is_readable_under_the_path_in_the_tree(tmp_path: Path) -> None:
    made = Responses(RunRecord(tmp_path, "run-1"), sandboxed=True)
    made.record.open()
    made.ensure_response_dir()
    path = made.prompt_for(ANALYST, "001-analyst", "the prompt")
    inside = made.tmp_of(ANALYST) / path.relative_to(tmp_path / ".tmp")
    assert (path.read_text(), inside.read_text()) == ("the prompt", "the prompt")
