"""Files that a check runs without naming them, and other users' traps that end in one line."""

import os
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from quintet.config import load_settings
from quintet.errors import QueueError, ServerError
from quintet.fleet.database import Database
from quintet.fleet.reading import open_to_read, refuse_encoding
from quintet.server import state_folder
from quintet.setup.check_files import lint_checks
from tests.fleet.postgres import postgres
from tests.stub.replies import TASK

TESTED = {"tests/test_a.py": ""}


def warnings(wd: Path, script: str, protect: list[str], files: dict[str, str]) -> str:
    """What lint says of a task with this check, in a project with these files."""
    for name, text in files.items():
        (wd / name).parent.mkdir(parents=True, exist_ok=True)
        (wd / name).write_text(text)
    settings = load_settings(None, {"PROTECT": ",".join(protect)}, {"wd": str(wd)}, wd).settings
    task = f"{TASK}\n```verify\n{script}\n```\n"
    return "\n".join(finding.text for finding in lint_checks(task, settings))


@pytest.mark.parametrize(
    ("script", "files", "named"),
    [
        pytest.param("python3 -m pytest tests", {"pytest.py": ""}, "pytest.py is run instead", id="a module"),
        pytest.param("python3 -m pytest tests", {}, "pytest.py, if an agent creates it, is run", id="a later one"),
        pytest.param("python3 -m unittest", {"unittest/__init__.py": ""}, "unittest/ is run instead", id="a package"),
        pytest.param("python3 -B -m pytest", {"pytest.py": ""}, "pytest.py is run instead", id="with options"),
        pytest.param("pytest tests", {"conftest.py": ""}, "conftest.py is run by pytest", id="conftest above"),
        pytest.param("npm test", {"package.json": "{}"}, "package.json decides", id="npm"),
        pytest.param("make test", {"Makefile": ""}, "Makefile decides", id="make"),
        pytest.param("PYTHONPATH=. python3 tests/x.py", {"sitecustomize.py": ""}, "sitecustomize.py is run", id="site"),
    ],
)
def test_lint_names_what_a_check_runs_without_naming_it(
    tmp_path: Path, script: str, files: dict[str, str], named: str
) -> None:
    """Finding 19: `./pytest.py` shadows `python3 -m pytest` although `tests/**` is protected."""
    assert named in warnings(tmp_path, script, ["tests/**"], TESTED | files)


@pytest.mark.parametrize(
    ("script", "protect"),
    [
        ("python3 -m pytest tests", ["tests/**", "pytest.py", "pytest/**", "conftest.py"]),
        ("make test", ["Makefile"]),
        ("sh check.sh", ["check.sh"]),
        ("echo remake the maker", ["tests/**"]),
    ],
)
def test_lint_is_silent_about_what_is_protected(tmp_path: Path, script: str, protect: list[str]) -> None:
    """The honest neighbour of finding 19."""
    assert warnings(tmp_path, script, protect, TESTED | {"Makefile": "", "check.sh": "", "conftest.py": ""}) == ""


@pytest.mark.parametrize("trap", ["folder", "file", "link"])
def test_a_folder_that_another_user_has_taken_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    """Finding 21: `/tmp/quintet-UID` squatted; "remove it" is no advice in a folder where only the owner can."""
    taken = Path(f"/tmp/quintet-{os.getuid()}0{os.getpid()}")
    monkeypatch.setattr(os, "getuid", lambda: int(taken.name.removeprefix("quintet-")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("long" * 30)))
    if trap == "folder":
        taken.mkdir()
    elif trap == "file":
        taken.touch()
    else:
        taken.symlink_to(tmp_path)
    try:
        with pytest.raises(ServerError, match=r"is not a directory of yours; set XDG_STATE_HOME to a folder") as told:
            state_folder.default_root()
    finally:
        taken.rmdir() if trap == "folder" else taken.unlink()
    assert len(str(told.value).splitlines()) == 1


def test_a_database_without_an_encoding_is_refused_in_one_line() -> None:
    """Finding 22: PostgreSQL returns bytes from it, and there was a traceback."""
    closed: list[bool] = []
    info = SimpleNamespace(parameter_status=lambda _: "SQL_ASCII", dbname="quintet")
    with pytest.raises(QueueError, match="has the encoding SQL_ASCII; make one with UTF8") as told:
        refuse_encoding(SimpleNamespace(info=info, close=lambda: closed.append(True)))
    assert closed
    assert len(str(told.value).splitlines()) == 1
    info.parameter_status = lambda _: "UTF8"
    refuse_encoding(SimpleNamespace(info=info))


@pytest.mark.attacks
def test_no_command_of_the_queue_stumbles_over_it() -> None:
    """Finding 22, with a real database: those that read, and those that write."""
    with postgres() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            words = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
            connection.execute(f"CREATE DATABASE plain {words}")
        url = server.url.replace("/postgres?", "/plain?")
        for opened in (Database, open_to_read):
            with pytest.raises(QueueError, match=r"^the database plain has the encoding SQL_ASCII; .*UTF8"):
                opened(url)
