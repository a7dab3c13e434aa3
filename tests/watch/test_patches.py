"""Patches as values: what git writes, what agents may write, and how much of it a page shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.watch.runs.patches import (
    HUNK,
    LONGEST,
    MOST_FILES,
    MOST_LINES,
    MOST_OF_FILE,
    OPEN_IN_ALL,
    OPEN_LINES,
    DiffLine,
    FileDiff,
    parse_patch,
    show,
)

CHANGED = b"""diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -3,3 +3,4 @@ def f():
 same
-old
+new
+more
 end
\\ No newline at end of file
"""


def test_a_changed_file_with_the_numbers_of_its_lines() -> None:
    (file,) = parse_patch(CHANGED)
    assert (file.path, file.kind, file.words, file.added, file.removed) == ("src/a.py", "changed", "", 2, 1)
    assert file.lines == (
        DiffLine(HUNK, None, None, "@@ -3,3 +3,4 @@ def f():"),
        DiffLine(" ", 3, 3, "same"),
        DiffLine("-", 4, None, "old"),
        DiffLine("+", None, 4, "new"),
        DiffLine("+", None, 5, "more"),
        DiffLine(" ", 5, 6, "end"),
        DiffLine("\\", None, None, "No newline at end of file"),
    )


@pytest.mark.parametrize(
    ("header", "title", "words"),
    [
        ("a/x b/x\nold mode 100644\nnew mode 100755", "x", "mode 100644 → 100755"),
        ("a/a b/c b/a b/c\nnew file mode 100644\nindex 0..1", "a b/c", "new"),
        ('"a/a\\tb\\n\\"\\001" "b/a\\tb\\n\\"\\001"\ndeleted file mode 100644\nindex 0..1', 'a\tb\n"\x01', "deleted"),
        ("a/a b/c d\nsimilarity index 90%\nrename from a\nrename to c d", "a → c d", "renamed"),
        ('a/a "b/c\\n"\nsimilarity index 90%\nrename from a\nrename to "c\\n"', "a → c\n", "renamed"),
        (
            "a/p.png b/p.png\nindex 0..1 100644\nBinary files a/p.png and b/p.png differ",
            "p.png",
            "not shown: binary or",
        ),
        ("a/l b/l\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/l", "l", "new, symbolic link"),
        ("a/s b/s\nindex 1..2 160000\n--- a/s\n+++ b/s", "s", "submodule"),
        ("a/ü x b/ü x\nindex 1..2\n--- a/ü x\t\n+++ b/ü x\t", "ü x", ""),
    ],
)
def test_headers_of_all_kinds(header: str, title: str, words: str) -> None:
    (file,) = parse_patch(f"diff --git {header}\n".encode())
    assert file.title == title
    assert file.words.startswith(words)


def test_content_that_looks_like_a_header_is_content() -> None:
    text = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n"
    text += b"---- a/y\n++++ b/y\n \n+diff --git a/z b/z\n+@@ -1 +1 @@\n"
    (file,) = parse_patch(text)
    assert [(line.sign, line.text) for line in file.lines[1:]] == [
        ("-", "--- a/y"),
        ("+", "+++ b/y"),
        (" ", ""),
        ("+", "diff --git a/z b/z"),
        ("+", "@@ -1 +1 @@"),
    ]


def test_line_ends_and_bytes_that_are_no_text() -> None:
    (file,) = parse_patch(b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\r\n-b\r\n+b\n+\xff\x85\x1b[31m\n")
    assert [line.text for line in file.lines[1:]] == ["a", "b^M", "b", "��\x1b[31m"]


@given(st.binary(max_size=400), st.lists(st.sampled_from(CHANGED.split(b"\n")), max_size=12))
def test_no_text_is_an_error(torn: bytes, lines: list[bytes]) -> None:
    for text in (torn, b"diff --git " + torn, b"\n".join([*lines, torn, *lines])):
        for file in parse_patch(text):
            assert file.added + file.removed <= len(file.lines)


def test_a_page_shows_short_files_unfolded_and_not_all_of_a_long_diff() -> None:
    def file(name: str, number: int) -> FileDiff:
        return FileDiff(name, lines=(DiffLine("+", None, 1, "x" * (LONGEST + 7)),) * number)

    shown, more = show(
        [file("short", 1), file("long", OPEN_LINES + 1), file("huge", MOST_OF_FILE + 5), file("none", 0)]
    )
    assert [(one.is_open, len(one.lines), one.left_out) for one in shown] == [
        (True, 1, 0),
        (False, OPEN_LINES + 1, 0),
        (False, MOST_OF_FILE, 5),
        (False, 0, 0),
    ]
    assert more == 0
    assert shown[0].lines[0].text.endswith(" … (7 more characters)")

    shown, more = show([file("same", OPEN_LINES)] * (MOST_FILES + 3))
    assert more == 3
    assert sum(len(one.lines) for one in shown) == MOST_LINES
    assert sum(len(one.lines) for one in shown if one.is_open) == OPEN_IN_ALL
    assert shown[-1].left_out == OPEN_LINES
