"""The help, the prompts' texts and the completion, as a new user meets them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import quintet
from quintet.cli.commands import SECTIONS
from quintet.cli.main import cli
from quintet.config import TABLE
from quintet.config.describe import describe_allowed, describe_default, sections
from quintet.config.kinds import Choice, Seconds
from quintet.errors import PromptError, RunError
from quintet.loop.decide.prompts.texts import shipped_texts, text_of
from quintet.roles import ROLES
from tests.docs.pages import DOCS


def run(*words: str, **env: str) -> Result:
    return CliRunner().invoke(cli, words, env=env)


def test_every_command_is_in_a_section_and_says_what_it_does() -> None:
    shown = [command for commands in SECTIONS.values() for command in commands]
    assert sorted(cli.commands) == sorted(command.name or "" for command in shown)
    assert all(command.get_short_help_str() for command in shown)
    said = run("--help").output
    assert all(f"{name}:" in said for name in SECTIONS)


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_help(name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert "Usage:" in done.output


@pytest.mark.parametrize("name", ["run", "config", "doctor"])
def test_the_help_shows_each_setting_with_its_default_and_its_choices(name: str) -> None:
    lines = run(name, "--help", COLUMNS="80").output.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    for row in TABLE:
        assert f"{row.flag} " in text or f"--[no-]{row.flag.removeprefix('--')} " in text
        told = f"{row.meaning}{f' ({allowed})' if (allowed := describe_allowed(row)) else ''}"
        assert f"{told} [default: {describe_default(row)}]" in text
    choices = [row.kind.names for row in TABLE if isinstance(row.kind, Choice)]
    assert len(choices) >= 3
    assert all(", ".join(names) in text for names in choices)
    assert text.count(" SECONDS ") == sum(isinstance(row.kind, Seconds) for row in TABLE)


def test_the_help_has_the_sections_of_the_page_of_settings() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    titles = [title for title, rows in sections() if rows]
    assert re.findall(r"^## (.+)$", page, re.MULTILINE)[: len(titles)] == titles
    lines = run("run", "--help").output.splitlines()
    assert [line[:-1] for line in lines if line[:-1] in titles] == titles


def test_a_settings_variable_is_its_name_in_capitals() -> None:
    names = [row.flag.removeprefix("--").replace("-", "_") for row in TABLE]
    assert [row.env for row in TABLE] == [name.upper() for name in names], "the help says so"


def test_without_a_command_the_help_is_shown() -> None:
    done = subprocess.run([sys.executable, "-m", "quintet"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "quintet init" in done.stdout


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").output == f"quintet {quintet.__version__}\n"


def test_the_prompts_can_be_listed_and_read() -> None:
    assert [line.split()[0] for line in run("prompts", "list").output.splitlines()] == list(shipped_texts())
    assert run("prompts", "show", "tester").output == text_of("tester")
    error = run("prompts", "show", "testr").exception
    assert isinstance(error, PromptError)
    assert "did you mean tester.md?" in str(error)


def test_the_prompts_can_be_taken_over_and_are_never_overwritten(tmp_path: Path) -> None:
    folder = str(tmp_path / "mine")
    assert len(run("prompts", "export", folder).output.splitlines()) == len(shipped_texts())
    assert run("prompts", "check", folder).output == f"{folder}: nothing is wrong\n"
    (tmp_path / "mine/tester.md").write_text("mine")
    assert isinstance(run("prompts", "export", folder).exception, PromptError)
    assert (tmp_path / "mine/tester.md").read_text() == "mine"
    other = shutil.copytree(folder, tmp_path / "other")  # one process reads a text once
    done = run("prompts", "check", str(other))
    assert done.exit_code == 1
    assert len(done.output.splitlines()) == 3
    one = str(tmp_path / "one")
    assert run("prompts", "export", one, "analyst.md").output.splitlines() == [f"{one}/analyst.md"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_printed_or_installed(shell: str, tmp_path: Path) -> None:
    printed = run("completion", shell).output
    assert "_QUINTET_COMPLETE" in printed
    assert run("completion", SHELL=f"/usr/bin/{shell}").output == printed
    done = run("completion", shell, "--install", HOME=str(tmp_path))
    assert done.exit_code == 0
    path = Path(done.output.splitlines()[0].removeprefix("Written: "))
    assert path.is_relative_to(tmp_path)
    assert path.read_text().strip() == printed.strip()


def test_a_shell_that_is_not_known_has_to_be_named() -> None:
    assert isinstance(run("completion", SHELL="/bin/csh").exception, RunError)


def completed(words: str, cwd: Path) -> list[str]:
    """What bash would offer for the last word."""
    env = {
        "_QUINTET_COMPLETE": "bash_complete",
        "COMP_WORDS": f"quintet {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    if words.endswith(" "):
        env["COMP_CWORD"] = str(len(words.split()) + 1)
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'quintet'; from quintet.cli.main import main; main()"]
    done = subprocess.run(
        command, env={**os.environ, **env}, cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_roles_providers_and_runs_are_completed(tmp_path: Path) -> None:
    folder = tmp_path / ".tmp/20260101-000000-abcdef"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").touch()
    assert completed("doc", tmp_path) == ["doctor"]
    assert completed("attach ", tmp_path) == [role.name for role in ROLES]
    assert completed("run --provider c", tmp_path)[:2] == ["codex", "claude_code"]
    assert completed("report 2026", tmp_path) == [folder.name]
    assert "--dry-run" in completed("run --dr", tmp_path)
