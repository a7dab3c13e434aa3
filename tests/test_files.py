"""The only module that writes files: whole, private, and never through a link below the project."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quintet import files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


WRITERS: dict[str, Callable[[Path, Path], object]] = {
    "write": lambda path, below: files.write(path, "new", below),
    "write_new": lambda path, below: files.write_new(path, "new", below),
    "append_line": lambda path, below: files.append_line(path, "new\n", below),
}


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("how", WRITERS)
def test_a_file_and_the_folders_above_it_are_private(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a" / "b" / "file"
    WRITERS[how](path, tmp_path)
    assert path.read_text().strip() == "new"
    assert [mode(path), mode(path.parent), mode(path.parent.parent)] == [0o600, 0o700, 0o700]


def test_a_file_of_the_users_has_the_rights_that_the_user_gives(tmp_path: Path) -> None:
    files.write(tmp_path / "a" / "one", "x", tmp_path, private=False)
    files.write_new(tmp_path / "a" / "two", "x", private=False)
    assert [mode(tmp_path / "a" / name) for name in (".", "one", "two")] == [0o755, 0o644, 0o644]


def test_wider_rights_are_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    for name in ("written", "appended", "moved"):
        (folder / name).write_text("x\n")
        (folder / name).chmod(0o664)
    files.make_folder(folder, tmp_path)
    files.write(folder / "written", "y", tmp_path)
    files.append_line(folder / "appended", "y\n", tmp_path)
    files.move(folder / "moved", folder / "there", tmp_path)
    assert mode(folder) == 0o700
    assert [mode(folder / name) for name in ("written", "appended", "there")] == [0o600] * 3


def test_a_folder_of_the_users_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    files.write(tmp_path / "theirs" / "file", "x", tmp_path)
    files.write(tmp_path / "file", "x", tmp_path)
    assert mode(tmp_path / "theirs") == 0o755


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize("depth", [0, 1])
def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, how: str, depth: int) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    (outside / "in").mkdir(parents=True)
    project.mkdir()
    (project / "link").symlink_to(outside)
    path = project / "link" / "file" if depth == 0 else project / "link" / "in" / "file"
    with pytest.raises(OSError, match="it is a symbolic link") as refused:
        WRITERS[how](path, project)
    assert refused.value.filename == str(project / "link")
    assert [entry.name for entry in outside.iterdir()] == ["in"]
    assert list((outside / "in").iterdir()) == []


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("how", WRITERS)
def test_a_file_that_is_a_link_is_never_written_through(tmp_path: Path, how: str, dangling: bool) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    project.mkdir()
    if not dangling:
        outside.write_text("theirs")
    (project / "file").symlink_to(outside)
    if how == "write":
        files.write(project / "file", "new", project)
        assert not (project / "file").is_symlink()
        assert (project / "file").read_text() == "new"
    else:
        with pytest.raises(OSError, match="symbolic link" if how == "append_line" else "File exists"):
            WRITERS[how](project / "file", project)
    assert outside.exists() is not dangling
    assert dangling or outside.read_text() == "theirs"


def test_what_is_behind_a_link_is_neither_read_nor_moved_nor_removed(tmp_path: Path) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    project.mkdir()
    (outside / "file").write_text("secret")
    (project / "link").symlink_to(outside)
    (project / "file").symlink_to(outside / "file")
    for path in (project / "link" / "file", project / "file"):
        with pytest.raises(OSError, match="symbolic link"), files.reading(path, project):
            pass
    with pytest.raises(OSError, match="symbolic link"):
        files.remove(project / "link" / "file", project)
    with pytest.raises(OSError, match="symbolic link"):
        files.move(project / "link" / "file", project / "here", project)
    with pytest.raises(OSError, match="symbolic link"):
        files.make_folder(project / "link", project)
    assert not files.is_folder(project / "link", project)
    files.move(project / "file", project / "moved", project)
    assert (project / "moved").is_symlink()
    assert (outside / "file").read_text() == "secret"
    assert mode(outside / "file") == 0o644


def test_links_of_the_users_own_are_followed(tmp_path: Path) -> None:
    """The project may be reached over a link, and a path that the user has named may be one."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write(tmp_path / "link" / "a" / "one", "x", tmp_path / "link")
    files.write(tmp_path / "link" / "two", "x")
    (tmp_path / "file").symlink_to(tmp_path / "real" / "three")
    files.write(tmp_path / "file", "x")
    assert sorted(path.name for path in (tmp_path / "real").rglob("*")) == ["a", "one", "three", "two"]
    assert (tmp_path / "file").is_symlink()


def test_a_path_that_leads_up_is_not_below(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    files.write(tmp_path / "project" / ".." / "file", "x", tmp_path / "project")
    assert (tmp_path / "file").read_text() == "x"


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with files.replacing(path, tmp_path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_draft_is_seen_under_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with files.replacing(path, tmp_path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
    assert path.read_text() == "half"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_line_behind_a_torn_one_is_on_its_own(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"torn")
    files.append_line(path, f"one{ending}", tmp_path)
    files.append_line(path, f"two{ending}", tmp_path)
    assert path.read_bytes().decode() == f"torn{ending}one{ending}two{ending}"


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(OSError, match="no regular file"), files.reading(path, tmp_path):
        pass
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_an_error_names_the_whole_path(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match="Not a directory") as failed:
        files.write(tmp_path / "a" / "b" / "file", "x", tmp_path)
    assert failed.value.filename == str(tmp_path / "a")
    (tmp_path / "dir").mkdir()
    with pytest.raises(IsADirectoryError) as failed:
        files.write(tmp_path / "dir", "x", tmp_path)
    assert str(failed.value.filename) == str(tmp_path / "dir")
    assert files.look(tmp_path / "none" / "file", tmp_path) is None


def test_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")

    def other(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.rename", other)
    files.move(tmp_path / "file", tmp_path / "there", tmp_path)
    assert (tmp_path / "there").read_text() == "x"
    assert mode(tmp_path / "there") == 0o600
    assert not (tmp_path / "file").exists()
