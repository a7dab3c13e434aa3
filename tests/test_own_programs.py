"""Quintet's own programs are never taken from where agents can write."""

import os
from pathlib import Path

import pytest

from quintet import own_programs


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_is_taken_from_trusted_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 25: a folder of the work tree, a link to it, a link into it, and a relative folder on the PATH."""
    monkeypatch.setattr(own_programs, "_distrusted", {})
    tree, honest = tmp_path / "tree", program(tmp_path / "bin" / "tool")
    planted = program(tree / "bin" / "tool")
    (tmp_path / "linked").symlink_to(tree / "bin")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tool").symlink_to(planted)
    entries = ["", ".", "bin", tree / "bin", tmp_path / "linked", tmp_path / "mine", honest.parent]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, entries)))
    assert own_programs.find_program("tool") == str(planted), "nobody has been told of the tree"
    own_programs.distrust(tree)
    assert own_programs.find_program("tool") == str(honest)
    assert own_programs.trusted_path() == f"{tmp_path}/mine:{honest.parent}"
    assert own_programs.find_program("no-such-tool") is None
