"""What a run leaves is for its user alone, and nothing in the project leads it to write elsewhere."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.roles import ANALYST, TESTER
from tests.stub.project import smooth, turns
from tests.stub.replies import PASS
from tests.stub.server import Turn
from tests.stub.simulated import SimulatedProject, simulated_project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SimulatedProject]:
    before = os.umask(0o022)
    with simulated_project(tmp_path) as made:
        yield made
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Everything in a folder, and the folder itself, that others could read."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return [str(path.relative_to(folder.parent)) for path in paths if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def test_all_that_a_run_leaves_is_private(project: SimulatedProject) -> None:
    late = project.response_file(ANALYST)
    project.stub.script = smooth() | {TESTER: turns(PASS, act=lambda: late.write_text("late"))}
    done = project.run(VERIFY_CMD="echo checked")
    assert done.code == 0, done.text
    kept = {path.name for path in project.archive.iterdir()}
    assert {"journal.jsonl", "changes.json", "report.md", "report.html", "prompts", "001-analyst.md"} <= kept
    assert any("late" in name for name in kept)
    assert any("verify" in name for name in kept)
    assert open_to_others(project.wd / ".tmp") == []


def test_what_an_earlier_release_has_left_open_is_closed(project: SimulatedProject) -> None:
    project.saved_run()
    for folder in (project.archive / "prompts", project.wd / ".tmp" / "agent-responses"):
        folder.mkdir(parents=True)
    (project.archive / "journal.jsonl").write_text("")
    for path in (project.wd / ".tmp", *(project.wd / ".tmp").rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    done = project.run()
    assert done.code == 0, done.text
    assert open_to_others(project.wd / ".tmp") == []


def test_a_state_file_elsewhere_is_private_and_its_folder_is_left_alone(
    project: SimulatedProject, tmp_path: Path
) -> None:
    for place in (tmp_path / "theirs", project.wd / "build"):
        place.mkdir()
        state = place / "state.json"
        assert project.run(STATE_FILE=str(state)).code == 0
        assert stat.S_IMODE(state.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.stat().st_mode) == 0o755


@pytest.mark.parametrize("name", [".tmp", ".tmp/agent-responses"])
def test_a_folder_that_is_a_link_stops_a_run_before_it_begins(
    project: SimulatedProject, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = project.wd / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    done = project.run()
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert f"{place}: " in done.err
    assert "symbolic link" in done.err
    assert list(outside.iterdir()) == []
    assert project.stub.prompts == []


@pytest.mark.parametrize("what", ["prompts", "journal.jsonl"])
def test_a_link_in_the_archive_is_never_written_through(project: SimulatedProject, tmp_path: Path, what: str) -> None:
    """Made by an agent in the middle of its turn."""
    outside = tmp_path / "outside"
    outside.mkdir() if what == "prompts" else outside.write_text("theirs")

    def act() -> None:
        place = project.archive / what
        place.rename(place.with_name("away"))
        place.symlink_to(outside)

    project.stub.script = smooth() | {ANALYST: [Turn(smooth()[ANALYST][0].reply, act=act)]}
    done = project.run()
    if what == "prompts":
        assert done.code == 1
        assert "symbolic link" in done.text
        assert list(outside.iterdir()) == []
    else:
        assert done.code == 0, done.text
        assert outside.read_text() == "theirs"


def test_a_state_file_that_is_a_link_is_replaced(project: SimulatedProject, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs")

    def act() -> None:
        project.state_file.unlink()
        project.state_file.symlink_to(outside)

    project.stub.script = smooth() | {ANALYST: [Turn(smooth()[ANALYST][0].reply, act=act)]}
    done = project.run()
    assert done.code == 0, done.text
    assert outside.read_text() == "theirs"
    assert not project.state_file.is_symlink()
