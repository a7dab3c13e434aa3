"""Tokens of a turn, their price, and the limit."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from quintet.api.backend import TerminalView
from quintet.api.models import TokenCount
from quintet.errors import CostUsedUp, PassingFault, TokensUsedUp
from quintet.loop.decide.state import State, TerminalRef
from quintet.loop.run.tokens import Spent, TokenLedger, cost, read_tokens
from tests.loop.runs import settings
from tests.stub.fake import FakeBackend, FakeClock


@dataclass
class Server(FakeBackend):
    """Tells of one terminal after the other."""

    told: list[Any] = field(default_factory=list)

    def get_terminal(self, terminal_id: str, seconds: float = 0.0) -> TerminalView:  # noqa: ARG002
        answer = self.told.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return TerminalView.model_validate({"usage": answer})


def server(*told: Any, own: bool = True) -> Server:
    return Server(FakeClock(), own, list(told))


def usage(read: int, cached: int, written: int) -> dict[str, int]:
    return {"input_tokens": read, "cached_tokens": cached, "output_tokens": written}


@pytest.mark.parametrize(
    "odd",
    [None, [], "many", {}, {"input_tokens": -5, "cached_tokens": True, "output_tokens": "9"}, PassingFault("away")],
)
def test_odd_answers_cost_nothing(odd: Any) -> None:
    tokens = read_tokens(server(odd), "t")
    assert tokens is None or tokens.total == 0


def test_another_server_is_not_asked() -> None:
    assert read_tokens(server(usage(1, 1, 1), own=False), "t") is None


def test_a_turn_with_a_reminder_is_the_sum_of_its_parts() -> None:
    backend = server(usage(100, 0, 10), usage(200, 100, 20), usage(5, 0, 5))
    ledger = TokenLedger(settings())
    ledger.note(backend, "t")
    assert ledger.close(backend, TerminalRef("t", "codex"), "") == Spent(TokenCount(input=300, cached=100, output=30))
    assert ledger.close(backend, TerminalRef("t", "codex"), "").tokens == TokenCount(input=5, cached=0, output=5)


def test_a_models_price_goes_before_its_providers() -> None:
    prices = {"codex": {"input": 1.0, "output": 1.0}, "small": {"input": 0.5, "cached": 0.1, "output": 2.0}}
    ledger = TokenLedger(settings(prices=prices))
    told = [usage(1_000_000, 500_000, 100_000)] * 2
    assert ledger.close(server(told[0]), TerminalRef("t", "codex"), "small").cost == 0.25 + 0.05 + 0.2
    assert ledger.close(server(told[1]), TerminalRef("t", "codex"), "").cost == 1.1
    assert ledger.close(server(usage(1, 1, 1)), TerminalRef("t", "claude_code"), "").cost is None


def test_more_cached_than_read_is_never_a_negative_price() -> None:
    assert cost(TokenCount(input=10, cached=99, output=0), {"input": 1.0, "cached": 0.0, "output": 1.0}) == 0


def test_the_limit() -> None:
    api = server()
    TokenLedger(settings()).check(State(tokens_used=10**9), api)
    TokenLedger(settings(max_tokens=100)).check(State(tokens_used=99), api)
    with pytest.raises(TokensUsedUp, match="100 tokens are used and MAX_TOKENS is 100"):
        TokenLedger(settings(max_tokens=100)).check(State(tokens_used=100), api)


def test_a_limit_that_nobody_counts_towards_is_said_once() -> None:
    said: list[str] = []
    ledger = TokenLedger(settings(max_tokens=5000), said.append)
    for _ in range(2):
        ledger.close(server(None), TerminalRef("t", "codex"), "")
    (warning,) = said
    assert "MAX_TOKENS is 5,000" in warning
    assert "NOT ALL TOKENS ARE COUNTED" in warning
    assert "codex" in warning


def test_over_another_server_the_limit_is_doubted_before_the_first_prompt() -> None:
    said: list[str] = []
    stranger = server(own=False)
    TokenLedger(settings(max_tokens=5000), said.append).check(State(tokens_used=0), stranger)
    assert "API" in said[0]
    said.clear()
    TokenLedger(settings(), said.append).check(State(tokens_used=0), stranger)
    TokenLedger(settings(max_tokens=5000), said.append).close(server(usage(1, 1, 1)), TerminalRef("t", "x"), "")
    assert said == [], "no limit, or tokens that are told: nothing to warn of"


def test_a_limit_of_money_stops_the_run() -> None:
    api = server()
    TokenLedger(settings(max_cost=3.0)).check(State(cost_used=2.99), api)
    with pytest.raises(CostUsedUp, match=r"the tokens have cost .* and MAX_COST is 3; set a higher limit"):
        TokenLedger(settings(max_cost=3.0)).check(State(cost_used=3.0), api)
