"""The editor of a terminal: it hands over what is offered, once, and is the user's own at any other time."""

import subprocess
from pathlib import Path

import pytest

from quintet.providers import editor

TEXT = "a\ttab, 'quotes', $HOME and `backticks`\n\tand no end of line"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").write_text('#!/bin/sh\necho "$@" > "$0.asked"\n')
    (tmp_path / "mine").chmod(0o755)
    (tmp_path / editor.OWN).mkdir()
    (tmp_path / editor.SCRIPT).write_text(editor.script(tmp_path, {"EDITOR": f"{tmp_path / 'mine'} --wait"}))
    (tmp_path / editor.INPUT).write_text(TEXT)
    return tmp_path


def open_editor(folder: Path) -> str:
    """As a program does: with a file that holds what stands in its composer."""
    file = folder / "a prompt.md"
    file.write_text("what was there")
    command = editor.command(folder)
    assert command is not None
    subprocess.run([*command.split(" "), str(file)], check=True, timeout=30)
    return file.read_text()


def test_what_is_offered_is_handed_over_once(folder: Path) -> None:
    for _ in range(2):
        editor.offer(folder)
        assert not editor.is_taken(folder)
        assert open_editor(folder) == TEXT
        assert editor.is_taken(folder)
        assert open_editor(folder) == "what was there"
    assert (folder / "mine.asked").read_text() == f"--wait {folder}/a prompt.md\n", "the user's own editor was opened"


def test_an_offer_that_is_withdrawn_is_the_last(folder: Path) -> None:
    assert editor.is_usable(folder)
    editor.offer(folder)
    assert editor.withdraw(folder)
    assert open_editor(folder) == "what was there"
    assert not editor.is_usable(folder)


def test_what_was_taken_cannot_be_withdrawn(folder: Path) -> None:
    editor.offer(folder)
    open_editor(folder)
    assert not editor.withdraw(folder)
    assert editor.is_usable(folder)


def test_a_folder_with_a_blank_has_no_editor(tmp_path: Path) -> None:
    assert editor.command(tmp_path / "my folder") is None
