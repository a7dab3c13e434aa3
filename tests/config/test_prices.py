"""What tokens cost, as the user says."""

import json
import math
from typing import Any

import pytest

from quintet.config.kinds import Prices

GOOD = {"codex": {"input": 1.25, "cached": 0, "output": 10}, "a-model": {"input": 1, "output": 2}}


def test_prices_are_numbers_by_model_or_provider() -> None:
    expected = {"codex": {"input": 1.25, "cached": 0.0, "output": 10.0}, "a-model": {"input": 1.0, "output": 2.0}}
    assert Prices().read(GOOD) == Prices().read(json.dumps(GOOD)) == expected


@pytest.mark.parametrize(
    "raw",
    ["", "cheap", "[]", 3, None, True, {"codex": 1}, {"codex": {}}, {"codex": {"input": 1}},
     {"c": {"input": 1, "output": "2"}},
     {"c": {"input": 1, "output": -1}}, {"c": {"input": True, "output": 1}}, {"c": {"input": 1, "output": math.inf}},
     {"c": {"input": math.nan, "output": 1}}, {"c": {"input": 1, "output": 1, "inputs": 1}},
     {"c": {"input": 10**400, "output": 1}}, "[" * 9000],
)  # fmt: skip
def test_anything_else_is_refused(raw: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the caller's
        Prices().read(raw)
