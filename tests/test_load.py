"""The short form of `make load`: a few runs at once, in one home."""

import pytest

from tools.loading.crowd import measure
from tools.loading.soak import FIGURES, Soak


def test_runs_side_by_side_all_pass_and_leave_nothing() -> None:
    cost = measure(2, think=0.0)  # it raises where a run does not pass, or leaves something behind
    assert cost.own_cpu > 0
    assert cost.own_memory > cost.runs
    assert cost.agents_memory > 0


@pytest.mark.parametrize("name", FIGURES)
def test_what_grows_during_a_soak_is_named(name: str) -> None:
    soak = Soak(seconds=100.0)
    for at in range(100):
        soak.note(at, **{figure: 10.0 + (at / 2 if figure == name else 0) for figure in FIGURES})
    assert soak.grown() == [name]


def test_what_stays_as_it_is_has_not_grown() -> None:
    soak = Soak(seconds=100.0)
    for at in range(100):
        soak.note(at, **dict.fromkeys(FIGURES, 10.0 + at % 3))
    assert soak.grown() == []
