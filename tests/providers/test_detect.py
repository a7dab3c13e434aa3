"""`quintet detect`, run as click runs it."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quintet.cli.commands import detect_command
from quintet.errors import QuintetError
from quintet.providers.registry import provider_names
from tests.providers.judging import RIGHT
from tools.screens import load

IDLE = "  >_ OpenAI Codex (v0.166.0)\n     ~/proj\n\n› Ask Codex\n\n  gpt-5-codex default · ~/proj\n"


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(detect_command, arguments, input=stdin)


def test_a_screen_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "screen.txt"
    file.write_text(IDLE)
    assert run("codex", str(file)).output == "idle\n"


@pytest.mark.parametrize("arguments", [("codex",), ("codex", "-")])
def test_a_screen_on_standard_input(arguments: tuple[str, ...]) -> None:
    assert run(*arguments, stdin=IDLE).output == "idle\n"


@pytest.mark.parametrize("name", ["claude_code", "claude"])
def test_claude_code_by_both_names(name: str) -> None:
    assert run(name, stdin=f"✻ Baking…\n\n{'─' * 40}\n❯ \n{'─' * 40}\n  footer\n").output == "processing\n"


def test_every_provider_of_the_registry_has_a_reader() -> None:
    for name in provider_names():
        assert run(name, stdin="").output == "unknown\n"


def test_colours_are_ignored() -> None:
    assert (
        run("codex", stdin="\x1b[1m›\x1b[0m go\n\n\x1b[2m•\x1b[0m Done.\n\n\x1b[1m›\x1b[0m x\n\n  y\n").output
        == "completed\n"
    )


def test_bytes_that_are_no_text() -> None:
    assert run("codex", stdin=b"\xff\xfe\x00\n\x9b").output == "unknown\n"


@pytest.mark.parametrize(("provider", "cli"), [("codex", "codex"), ("claude_code", "claude")])
def test_recordings_give_a_status_each(provider: str, cli: str, tmp_path: Path) -> None:
    recordings = load(cli)
    file = tmp_path / "recordings.jsonl"
    file.write_text("".join(f"{json.dumps(asdict(recording))}\n" for recording in recordings))
    statuses = run(provider, "--jsonl", str(file)).output.splitlines()
    judged = Counter(
        status in RIGHT[recording.state_label] for recording, status in zip(recordings, statuses, strict=True)
    )
    assert judged[True] / len(recordings) >= 0.98


def test_fields_other_than_the_screen_may_be_missing() -> None:
    lines = [
        {"screen": IDLE},
        {"screen": IDLE, "pane_title": "⠋ proj"},
        {"screen": IDLE, "pane_current_command": "zsh"},
    ]
    text = "".join(f"{json.dumps(line)}\n\n" for line in lines)
    assert run("codex", "--jsonl", stdin=f"\ufeff{text}").output == "idle\nprocessing\nerror\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: not a JSON object"),
        ("[1]", "line 1: not a JSON object"),
        ("[" * 100_000, "line 1: not a JSON object"),
        ("{}", "line 1: `screen` is missing or no text"),
        ('{"screen": 7}', "line 1: `screen` is missing or no text"),
        ('{"screen": "", "pane_title": 7}', "line 1: `pane_title` is no text"),
    ],
)
def test_a_bad_recording_is_named_in_one_line(line: str, said: str) -> None:
    error = run("codex", "--jsonl", stdin=line).exception
    assert isinstance(error, QuintetError)
    assert str(error) == f"standard input, {said}"


def test_a_missing_file_a_folder_and_an_unknown_provider(tmp_path: Path) -> None:
    for arguments in (("codex", str(tmp_path / "none")), ("codex", str(tmp_path)), ("nobody",)):
        error = run(*arguments, stdin="").exception
        assert isinstance(error, QuintetError)
        assert "\n" not in str(error)
