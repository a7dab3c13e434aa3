"""Lines that fit the terminal they are read in."""

import sys

import pytest

from quintet.cli.hanging import hanging


def test_a_long_text_goes_on_below_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    lines = hanging("ok  name  ", f"{'word ' * 12}/a/path/that-is-not-broken-anywhere-at-all").splitlines()
    assert len(lines) > 2
    assert lines[0].startswith("ok  name  word")
    assert all(line.startswith(" " * 10 + "word") for line in lines[1:-1])
    assert lines[-1] == f"{'':10}/a/path/that-is-not-broken-anywhere-at-all"
    assert max(map(len, lines[:-1])) <= 40


def test_where_no_terminal_shows_it_a_line_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert hanging("head ", "word " * 40) == "head " + "word " * 40
