"""`quintet profiles`."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quintet.cli.main import cli
from quintet.errors import ProfileError
from quintet.roles import ROLES
from quintet.server.profiles import load_profile, shipped_names


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["profiles", *arguments])


def test_list_names_the_five() -> None:
    lines = run("list").output.splitlines()
    assert [line.split()[0] for line in lines] == [role.profile for role in ROLES]
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", shipped_names())
def test_show_prints_the_whole_file(name: str) -> None:
    assert run("show", name).output == load_profile(name).text


@pytest.mark.parametrize("name", ["nobody", "../profiles/tester", "tester.md", ""])
def test_an_unknown_profile_is_an_error_that_names_those_there_are(name: str) -> None:
    error = run("show", name).exception
    assert isinstance(error, ProfileError)
    assert "shipped are system_analyst, " in str(error)


def test_export_writes_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    result = run("export", str(folder))
    assert result.output.splitlines() == [str(folder / f"{name}.md") for name in shipped_names()]
    assert {path.name for path in folder.iterdir()} == {f"{name}.md" for name in shipped_names()}
    assert (folder / "tester.md").read_text(encoding="utf-8") == load_profile("tester").text
    assert run("export", str(folder)).exit_code == 0, "what is ours already may be written again"


def test_export_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "tester.md").write_text("mine")
    assert isinstance(run("export", str(tmp_path)).exception, ProfileError)
    assert (tmp_path / "tester.md").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["tester.md"]


def test_export_onto_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert isinstance(run("export", str(tmp_path / "file")).exception, ProfileError)
