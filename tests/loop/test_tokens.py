"""Tokens of a turn, their price, and the limit."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from quintet.api.client import ApiClient
from quintet.errors import PassingFault, TokensUsedUp
from quintet.loop.decide.state import Terminal
from quintet.loop.journal import TurnTokens
from quintet.loop.run.tokens import Ledger, cost, read_tokens
from tests.loop.runs import settings


@dataclass
class Server:
    """Tells of one terminal after the other."""

    told: list[Any] = field(default_factory=list)
    own: bool = True

    def get_terminal(self, terminal_id: str) -> dict[str, Any]:  # noqa: ARG002
        answer = self.told.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"usage": answer}

    def as_client(self) -> ApiClient:
        return cast(ApiClient, self)


def usage(read: int, cached: int, written: int) -> dict[str, int]:
    return {"input_tokens": read, "cached_tokens": cached, "output_tokens": written}


@pytest.mark.parametrize(
    "odd",
    [None, [], "many", {}, {"input_tokens": -5, "cached_tokens": True, "output_tokens": "9"}, PassingFault("away")],
)
def test_odd_answers_cost_nothing(odd: Any) -> None:
    tokens = read_tokens(Server([odd]).as_client(), "t")
    assert tokens is None or tokens.total == 0


def test_another_server_is_not_asked() -> None:
    assert read_tokens(Server([usage(1, 1, 1)], own=False).as_client(), "t") is None


def test_a_turn_with_a_reminder_is_the_sum_of_its_parts() -> None:
    server = Server([usage(100, 0, 10), usage(200, 100, 20), usage(5, 0, 5)])
    ledger = Ledger(settings())
    ledger.note(server.as_client(), "t")
    assert ledger.close(server.as_client(), Terminal("t", "codex"), "") == (
        TurnTokens(input=300, cached=100, output=30),
        None,
    )
    assert ledger.close(server.as_client(), Terminal("t", "codex"), "")[0] == TurnTokens(input=5, cached=0, output=5)


def test_a_models_price_goes_before_its_providers() -> None:
    prices = {"codex": {"input": 1.0, "output": 1.0}, "small": {"input": 0.5, "cached": 0.1, "output": 2.0}}
    ledger = Ledger(settings(prices=prices))
    told = [usage(1_000_000, 500_000, 100_000)] * 2
    assert ledger.close(Server(told[:1]).as_client(), Terminal("t", "codex"), "small")[1] == 0.25 + 0.05 + 0.2
    assert ledger.close(Server(told[1:]).as_client(), Terminal("t", "codex"), "")[1] == 1.1
    assert ledger.close(Server([usage(1, 1, 1)]).as_client(), Terminal("t", "claude_code"), "")[1] is None


def test_more_cached_than_read_is_never_a_negative_price() -> None:
    assert cost(TurnTokens(input=10, cached=99, output=0), {"input": 1.0, "cached": 0.0, "output": 1.0}) == 0


def test_the_limit() -> None:
    api = Server().as_client()
    Ledger(settings()).check(10**9, api)
    Ledger(settings(max_tokens=100)).check(99, api)
    with pytest.raises(TokensUsedUp, match="100 tokens are used and MAX_TOKENS is 100"):
        Ledger(settings(max_tokens=100)).check(100, api)


def test_a_limit_that_nobody_counts_towards_is_said_once() -> None:
    said: list[str] = []
    ledger = Ledger(settings(max_tokens=5000), said.append)
    for _ in range(2):
        ledger.close(Server([None]).as_client(), Terminal("t", "codex"), "")
    (warning,) = said
    assert "MAX_TOKENS is 5,000" in warning
    assert "NOT ALL TOKENS ARE COUNTED" in warning
    assert "codex" in warning


def test_over_another_server_the_limit_is_doubted_before_the_first_prompt() -> None:
    said: list[str] = []
    stranger = Server(own=False).as_client()
    Ledger(settings(max_tokens=5000), said.append).check(0, stranger)
    assert "API" in said[0]
    said.clear()
    Ledger(settings(), said.append).check(0, stranger)
    Ledger(settings(max_tokens=5000), said.append).close(Server([usage(1, 1, 1)]).as_client(), Terminal("t", "x"), "")
    assert said == [], "no limit, or tokens that are told: nothing to warn of"
