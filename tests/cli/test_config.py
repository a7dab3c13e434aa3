"""`quintet config`, run as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quintet.config import TABLE
from tests.stub.preloaded import run

Quintet = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def quintet(tmp_path: Path) -> Quintet:
    """The command in a clean environment and an empty folder."""

    def in_place(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        if not env.keys() & {"LANG", "LC_ALL", "PYTHONIOENCODING", "PYTHONUTF8"}:  # what Python reads when it starts
            return run(arguments, clean | env, tmp_path)
        return subprocess.run(
            [sys.executable, "-m", "quintet", *arguments],
            cwd=tmp_path,
            env=clean | env,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=60,
        )

    return in_place


def test_every_setting_and_its_place_is_printed(quintet: Quintet, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"limits": {"max_rounds": 3, "max_review_cycles": 4}}')
    done = quintet("config", "c.json", "--provider", "scripted", MAX_REVIEW_CYCLES="5")
    assert done.returncode == 0
    assert done.stderr == ""
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()}
    assert rows["limits.max_rounds"] == ["3", "limits.max_rounds in c.json"]
    assert rows["limits.max_review_cycles"] == ["5", "MAX_REVIEW_CYCLES"]
    assert rows["provider"] == ['"scripted"', "--provider"]
    assert rows["agents.tester.provider"] == ['"scripted"', "--provider"]
    assert rows["limits.poll_seconds"] == ["2.0", "default"]
    assert rows["resume"] == ["unset", "default"]
    assert len(rows) == len(TABLE) + 5 * 4


def test_a_program_can_read_it(quintet: Quintet, tmp_path: Path) -> None:
    done = quintet("config", "--json", "--no-strict-file-handoff", "--poll-seconds", "0.5")
    document = json.loads(done.stdout)
    assert document["handoff.strict_file_handoff"] == {"value": False, "from": "--strict-file-handoff"}
    assert document["limits.poll_seconds"] == {"value": 0.5, "from": "--poll-seconds"}
    assert document["wd"]["value"] == str(tmp_path)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ('{"limits": {"max_round": 3}}', ["limits.max_round", "did you mean limits.max_rounds?"]),
        ('{"agents": {"tester": {"provider": "codx"}}}', ["agents.tester.provider", '"codx"', "did you mean codex?"]),
        ('{"agents": {"nobody": {}}}', ["agents.nobody", "agents.tester"]),
        ('{"start_agent": "reviewer"}', ["start_agent", '"reviewer"', "peer_analyst"]),
        ('{"limits": {"max_rounds": 0}}', ["limits.max_rounds", "0", "from 1"]),
        ('{"cleanup_on_exit": "maybe"}', ["cleanup_on_exit", '"maybe"', "true or false"]),
        ('{"prompt_file": "no.md"}', ["no.md", "No such file"]),
        ("[]", ["c.json", "[]", "JSON object"]),
        ("{", ["c.json", "not JSON"]),
        ('{"provider": ' + "[" * 970 + "]" * 970 + "}", ["provider" if sys.version_info >= (3, 12) else "c.json"]),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(
    content: str, parts: list[str], quintet: Quintet, tmp_path: Path
) -> None:
    (tmp_path / "c.json").write_text(content)
    done = quintet("config", "c.json")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("quintet: ")
    for part in parts:
        assert part in line


@pytest.mark.parametrize(
    ("arguments", "env", "part"),
    [
        (["missing.json"], {}, "missing.json"),
        (["."], {}, "Is a directory"),
        (["--max-rounds", "x"], {}, "--max-rounds"),
        (["--max-round", "3"], {}, "--max-round"),
        (["a.json", "b.json"], {}, "b.json"),
        ([], {"POLL_SECONDS": "soon"}, "POLL_SECONDS"),
        ([], {"WD": "/nowhere/at/all"}, "/nowhere/at/all"),
        ([], {"PROVIDER": "grok_cli"}, "codex, claude_code, gemini_cli"),
    ],
)
def test_a_mistake_in_flags_or_variables_too(
    arguments: list[str], env: dict[str, str], part: str, quintet: Quintet
) -> None:
    done = quintet("config", *arguments, **env)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert part in line


def test_a_warning_is_no_error(quintet: Quintet) -> None:
    done = quintet("config", MAX_REVIEW_CYCLES="1")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: min_review_cycles_before_approval (2)")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_a_terminal_that_cannot_show_everything_gets_what_it_can(
    encoding: str, quintet: Quintet, tmp_path: Path
) -> None:
    (tmp_path / "c.json").write_text('{"prompt": "' + "ü" * 100 + '"}')
    for form in ([], ["--json"]):
        done = quintet("config", "c.json", *form, PYTHONIOENCODING=encoding)
        assert done.returncode == 0
        assert "agents.tester.args" in done.stdout, "it goes on to the end"


def test_a_folder_with_an_unusual_name(quintet: Quintet, tmp_path: Path) -> None:
    for name in ('it\'s a "test" ü', "new\nline"):
        (tmp_path / name).mkdir()
        done = quintet("config", "--json", WD=name)
        assert json.loads(done.stdout)["wd"]["value"] == str(tmp_path / name)
