"""Words for a terminal."""

import io
import sys

import pytest

from quintet.prose import columns, commands, for_stream, hanging, plural, wrapped

PROSE = "warning: well-known words and /a/very/long/path/that-has-hyphens-in-it/and-goes-on/for-more/than-80.md end"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_end_at_blanks_only() -> None:
    for width in (20, 40, 80):
        lines = wrapped(PROSE, width, indent="  ").split("\n")
        assert " ".join(lines).split() == PROSE.split(), "no word is broken"
        assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


def test_people_get_lines_and_programs_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = "word " * 40
    assert for_stream(text, io.StringIO()) == text
    lines = for_stream(text, Terminal(), rest="    ").split("\n")
    assert len(lines) > 1
    assert all(len(line) <= 80 for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])


@pytest.mark.parametrize(("number", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files")])
def test_one_file_and_two_files(number: int, words: str) -> None:
    assert plural(number, "file") == words


def test_notes_go_above_where_a_line_would_be_too_long() -> None:
    assert commands([("ls", "look"), ("cd x", "")]) == "  ls  # look\n  cd x"
    assert commands([("l" * 79, "look")]) == f"  # look\n  {'l' * 79}"


def test_a_text_behind_a_head_goes_on_below_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    lines = hanging("ok  name  ", f"{'word ' * 12}/a/path/that-is-not-broken-anywhere-at-all").splitlines()
    assert len(lines) > 2
    assert lines[0].startswith("ok  name  word")
    assert all(line.startswith(" " * 10 + "word") for line in lines[1:-1])
    assert lines[-1] == f"{'':10}/a/path/that-is-not-broken-anywhere-at-all"
    assert max(map(len, lines[:-1])) <= 40


def test_a_text_behind_a_head_stays_whole_where_no_terminal_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert hanging("head ", "word " * 40) == "head " + "word " * 40


@pytest.mark.parametrize(("terminal", "width"), [("200", 80), ("60", 60), ("3", 30)])
def test_no_line_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, terminal: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", terminal)
    assert columns() == 80, "what is no terminal has no width"
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert columns() == width
    assert max(map(len, wrapped("word " * 40).split("\n"))) <= width
    row = [("a command of thirty characters", "a note of twenty five ..")]
    assert ("\n" in commands(row)) is (width < 60)
