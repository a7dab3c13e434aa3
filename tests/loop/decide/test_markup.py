"""Which lines of a text are its author's own."""

import re
from itertools import pairwise

import pytest
from hypothesis import given

from quintet.loop.decide.markup import MOST_FENCES, fences, label, normalise, own, unwrap
from tests.loop.texts import agent_texts

WORD = re.compile(r"^word$", re.MULTILINE)


def own_words(text: str) -> int:
    return len(list(own(WORD, text)))


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\rb", "\ufeffa\nb", "\ufeffa\r\nb"])
def test_line_ends_and_byte_order_mark_are_normalised(text: str) -> None:
    assert normalise(text) == "a\nb"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("word", 1),
        ("```\nword\n```", 0),
        ("```\nword\n```\nword", 1),
        ("~~~\nword\n```\nword\n~~~\nword", 1),
        ("````\n```\nword\n````\nword", 1),
        ("```\nword", 0),
        ("  ```\nword\n  ```\nword", 1),
        ("- ```\nword\n  ```\nword", 1),
        ("1. ```sh\nword\n   ```\nword", 1),
        ("```\n- ```\nword\n```\nword", 1),
        ("```markdown\n```python\nword\n```\nword\n```\nword", 1),
        ("```text\n```json\nword\n```\nword", 1),
        ("inline ``` marks\nword", 1),
        ("```inline code```\nword", 1),
        ("> ```\nword", 1),
    ],
)
def test_lines_in_a_fence_are_not_own(text: str, count: int) -> None:
    assert own_words(text) == count


def test_fences_are_named_from_the_opening_line_to_the_closing_one() -> None:
    assert list(fences("a\n```\nb\n```\nc")) == [(2, 11)]
    assert list(fences("no fence")) == []


def test_after_too_many_fences_everything_is_code() -> None:
    text = "```\n```\n" * MOST_FENCES + "word"
    assert own_words(text) == 0
    assert own_words("word\n" + text) == 1


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```\na\nb\n```", "a\nb"),
        ("\n```markdown\na\n```\n", "a"),
        ("~~~\na\n~~~", "a"),
        ("```\n```", ""),
        ("```\na\n```\nb", None),
        ("a\n```\nb\n```", None),
        ("```\na\n```\n```\nb\n```", None),
        ("```\na", None),
        ("```", None),
        ("", None),
    ],
)
def test_a_text_that_is_one_fence_is_unwrapped(text: str, inside: str | None) -> None:
    assert unwrap(text) == (text if inside is None else inside)


@pytest.mark.parametrize(
    "line",
    [
        "REVIEW_NOTES:",
        "**REVIEW_NOTES:**",
        "## Review notes",
        "### REVIEW_NOTES",
        "- review_notes: text",
        "`REVIEW_NOTES:`",
        "2. Review Notes:",
        "REVIEW\\_NOTES:",
    ],
)
def test_a_label_is_found_in_any_common_style(line: str) -> None:
    assert label("REVIEW_NOTES").search(f"before\n{line}\nafter")


@pytest.mark.parametrize("line", ["> REVIEW_NOTES:", "see REVIEW_NOTES:", "REVIEW_NOTES are below", "REVIEW_NOTESX:"])
def test_a_label_is_a_line_of_its_own(line: str) -> None:
    assert not label("REVIEW_NOTES").search(line)


@given(agent_texts)
def test_fences_lie_in_order_within_the_text(text: str) -> None:
    spans = list(fences(text))
    assert spans == sorted(spans)
    assert all(begin < end <= len(text) + 1 for begin, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
