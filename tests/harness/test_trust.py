"""The short form of `make trust`: a few rows of the corpus, and that the page has all of them."""

import pytest

from harness.trust.cheats import CHEATS, Cheat
from harness.trust.honest import HONEST, Honest
from harness.trust.page import PAGE, page_with_table
from harness.trust.trial import faults_of, try_cheat

SHORT = (
    "the tester commits its edit",
    "the programmer writes 'exit 0' into a protected check",
    "the user has staged, dirty and untracked files",
)
ROWS: tuple[Cheat | Honest, ...] = (*CHEATS, *HONEST)


@pytest.mark.parametrize("name", SHORT)
def test_a_row_of_the_corpus(name: str) -> None:
    (row,) = [row for row in ROWS if row.name == name]
    assert faults_of(row) == []


def test_without_the_guard_the_first_cheat_works() -> None:
    """So the corpus shows something: the guard is what stops it."""
    trial = try_cheat(CHEATS[0], GUARD="off")
    assert (trial.code, trial.did) == (0, ())


def test_the_corpus_is_large_enough() -> None:
    assert len(CHEATS) >= 40
    assert len(HONEST) >= 20
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_the_page_has_the_whole_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_with_table(text) == text, "python -m harness.trust --write writes it"
