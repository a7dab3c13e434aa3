"""`quintet init`: what it finds, writes and leaves."""

import json
import subprocess
from shutil import rmtree

import pytest

from quintet.config import load_settings
from quintet.config.schema import json_schema
from quintet.errors import RunError
from quintet.setup.init_files import OURS
from tests.setup.conftest import Desk
from tests.setup.programs import OPENSPEC, codex

OURS_FILES = {"quintet.json", ".quintet/schema.json", ".quintet/task.md", ".gitignore"}


def test_a_fresh_project_gets_its_files(desk: Desk) -> None:
    desk.install(codex=codex())
    done = desk.quintet("init")
    assert done.exit_code == 0, done.output
    assert desk.files().keys() == OURS_FILES
    document = json.loads((desk.wd / "quintet.json").read_text())
    assert document["provider"] == "codex"
    assert (desk.wd / document["$schema"]).is_file()
    schema = json.loads((desk.wd / ".quintet/schema.json").read_text())
    assert schema == {"$comment": OURS} | json_schema()
    assert load_settings(None, {}, {}, desk.wd).settings.provider == "codex"
    assert "found          codex: " in done.output


def test_the_first_agent_that_is_there_is_written_down(desk: Desk) -> None:
    desk.install(claude="#!/bin/sh\n")
    assert desk.quintet("init").exit_code == 0
    assert json.loads((desk.wd / "quintet.json").read_text())["provider"] == "claude_code"


def test_without_any_agent_it_says_so(desk: Desk) -> None:
    done = desk.quintet("init", "--provider", "scripted")
    assert "not found      any agent CLI" in done.output
    assert json.loads((desk.wd / "quintet.json").read_text())["provider"] == "scripted"


def test_twice_changes_nothing(desk: Desk) -> None:
    desk.install(codex=codex(), openspec=OPENSPEC)
    desk.quintet("init", "--yes")
    before = desk.files()
    done = desk.quintet("init", "--yes")
    assert done.exit_code == 0
    assert "Nothing was changed." in done.output
    assert desk.files() == before


def test_a_file_of_the_users_is_never_overwritten(desk: Desk) -> None:
    mine = {
        "quintet.json": '{"provider": "claude_code"}',
        ".quintet/schema.json": "{}",
        ".quintet/task.md": "mine <<task>>",
        ".agents/skills/openspec-explore/SKILL.md": "mine",
        "openspec/config.yaml": "mine",
    }
    desk.install(codex=codex(), openspec=OPENSPEC)
    for name, text in mine.items():
        (desk.wd / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.wd / name).write_text(text)
    assert desk.quintet("init", "--yes").exit_code == 0
    assert {name: (desk.wd / name).read_text() for name in mine} == mine
    assert (desk.wd / ".agents/skills/openspec-ff-change/SKILL.md").exists(), "what is missing is added"


def test_a_schema_of_another_release_is_brought_up_to_date(desk: Desk) -> None:
    desk.quintet("init")
    (desk.wd / ".quintet/schema.json").write_text(json.dumps({"$comment": OURS}))
    assert "updated        .quintet/schema.json" in desk.quintet("init").output
    assert "properties" in json.loads((desk.wd / ".quintet/schema.json").read_text())


@pytest.mark.parametrize("before", [b"build/\n", b"build/", b"build/\r\nx\r\n"])
def test_the_ignore_entry_is_a_line_of_its_own(desk: Desk, before: bytes) -> None:
    (desk.wd / ".gitignore").write_bytes(before)
    desk.quintet("init")
    after = (desk.wd / ".gitignore").read_bytes()
    assert after.startswith(before)
    assert after.decode().splitlines() == [*before.decode().splitlines(), ".tmp/"]
    assert subprocess.run(["git", "check-ignore", "-q", ".tmp/x"], cwd=desk.wd, check=False).returncode == 0


def test_what_is_ignored_already_needs_no_entry(desk: Desk) -> None:
    (desk.wd / ".gitignore").write_text(".tmp\n")
    desk.quintet("init")
    assert (desk.wd / ".gitignore").read_text() == ".tmp\n"


def test_outside_of_a_repository_there_is_nothing_to_ignore(desk: Desk) -> None:
    plain = desk.root / "plain"
    plain.mkdir()
    done = desk.quintet("init", "--wd", str(plain))
    assert done.exit_code == 0
    assert "not a git repository" in done.output
    assert not (plain / ".gitignore").exists()


def test_openspec_is_set_up_with_the_workflows_of_the_prompts(desk: Desk) -> None:
    desk.install(codex=codex(), claude="#!/bin/sh\n", openspec=OPENSPEC)
    done = desk.quintet("init", "--openspec")
    assert done.exit_code == 0, done.output
    for folder in (".agents", ".claude"):
        for skill in ("explore", "ff-change", "apply-change", "propose"):
            assert (desk.wd / folder / f"skills/openspec-{skill}/SKILL.md").is_file()
    assert not list((desk.root / "home").rglob("*")), "the user's own settings stay as they are"


def test_openspec_is_set_up_for_agents_of_the_protocol_and_of_the_users_own(desk: Desk) -> None:
    desk.install(gemini="#!/bin/sh\n", goose="#!/bin/sh\n", openspec=OPENSPEC)
    assert desk.quintet("init", "--yes").exit_code == 0
    assert json.loads((desk.wd / "quintet.json").read_text())["provider"] == "gemini_cli"
    for folder in (".gemini", ".agents"):
        assert (desk.wd / folder / "skills/openspec-ff-change/SKILL.md").exists()
    rmtree(desk.wd / ".agents")
    own = {"providers": {"mine": {"command": ["mine"]}}, "agents": {"tester": {"provider": "mine"}}}
    (desk.wd / "quintet.json").write_text(json.dumps(own))
    assert desk.quintet("init", "--yes").exit_code == 0
    assert (desk.wd / ".agents/skills/openspec-explore/SKILL.md").exists()


def test_an_agent_that_was_not_tried_is_not_chosen(desk: Desk) -> None:
    desk.install(goose="#!/bin/sh\n")
    desk.quintet("init")
    assert json.loads((desk.wd / "quintet.json").read_text())["provider"] == "codex"
    assert desk.quintet("init", "--provider", "goose").exit_code == 0


@pytest.mark.parametrize("words", [[], ["--no-openspec", "--yes"]])
def test_openspec_is_left_out_where_nobody_asked_for_it(desk: Desk, words: list[str]) -> None:
    desk.install(codex=codex(), openspec=OPENSPEC)
    assert desk.quintet("init", *words).exit_code == 0
    assert desk.files().keys() == OURS_FILES


def test_an_openspec_that_is_not_there_is_named(desk: Desk) -> None:
    desk.install(codex=codex())
    done = desk.quintet("init", "--yes")
    assert done.exit_code == 0
    assert "npm install -g @fission-ai/openspec" in done.output


@pytest.mark.parametrize(
    "program", ["#!/bin/sh\n[ $1 = --version ] || { echo broken; exit 3; }\n", "#!/bin/sh\necho 1\n"]
)
def test_an_openspec_that_fails_is_one_line(desk: Desk, program: str) -> None:
    desk.install(codex=codex(), openspec=program)
    error = desk.quintet("init", "--yes").exception
    assert isinstance(error, RunError)
    assert "openspec" in str(error).lower()
    assert "\n" not in str(error)


def test_a_folder_that_cannot_be_written_is_one_line(desk: Desk) -> None:
    (desk.wd / ".quintet").write_text("a file where a folder should be")
    error = desk.quintet("init").exception
    assert isinstance(error, RunError)
    assert ".quintet" in str(error)
