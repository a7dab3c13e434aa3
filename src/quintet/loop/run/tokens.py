"""Tokens: what the agents' own records say of their turns, and the limit at which a run stops."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quintet.api.client import ApiClient
from quintet.config import Settings
from quintet.errors import ApiError, TokensUsedUp
from quintet.loop.decide.state import Terminal
from quintet.loop.journal import TurnTokens

MILLION: Final = 1_000_000
_MOST: Final = 10**12
"""tokens of a turn; a server that tells of more is wrong"""


@dataclass
class Ledger:
    """Adds up a turn. One that needed a reminder has several records, of which a server tells only the last."""

    settings: Settings
    warn: Callable[[str], None] = lambda _: None
    _earlier: list[TurnTokens] = field(default_factory=list)
    _warned: bool = False

    def note(self, api: ApiClient, terminal: str) -> None:
        """Remember what a turn has cost that goes on with another prompt."""
        if tokens := read_tokens(api, terminal):
            self._earlier.append(tokens)

    def close(self, api: ApiClient, terminal: Terminal, model: str) -> tuple[TurnTokens | None, float | None]:
        """What the turn has cost in all: tokens, and money where the user gave prices."""
        last = read_tokens(api, terminal.id)
        parts, self._earlier = [*self._earlier, *([last] if last else [])], []
        if not parts:
            self._cannot_count(f"{terminal.provider} keeps no record of its tokens that can be read")
            return None, None
        total = TurnTokens(
            input=sum(part.input for part in parts),
            cached=sum(part.cached for part in parts),
            output=sum(part.output for part in parts),
        )
        prices = self.settings.prices or {}
        price = prices.get(model) or prices.get(terminal.provider)
        return total, cost(total, price) if price else None

    def check(self, used: int, api: ApiClient) -> None:
        """Stop a run that has used up its tokens; warn where nobody counts them."""
        most = self.settings.max_tokens
        if not api.own:
            self._cannot_count("the server named by API tells of none")
        if most and used >= most:
            raise TokensUsedUp(f"{used:,} tokens are used and MAX_TOKENS is {most:,}; set a higher limit")

    def _cannot_count(self, why: str) -> None:
        """A limit that cannot be kept is said once, and loudly."""
        most = self.settings.max_tokens
        if most and not self._warned:
            self._warned = True
            self.warn(f"MAX_TOKENS is {most:,}, but NOT ALL TOKENS ARE COUNTED and it may never stop this run: {why}")


def read_tokens(api: ApiClient, terminal: str) -> TurnTokens | None:
    """The tokens of a terminal's last turn; None where the server or the agent does not tell."""
    if not api.own:
        return None
    try:
        usage = api.get_terminal(terminal).get("usage")
    except ApiError:
        return None  # a figure is not worth a run
    if not isinstance(usage, dict):
        return None
    return TurnTokens(
        input=_number(usage.get("input_tokens")),
        cached=_number(usage.get("cached_tokens")),
        output=_number(usage.get("output_tokens")),
    )


def cost(tokens: TurnTokens, price: Mapping[str, float]) -> float:
    """Money by prices for a million tokens; what is cached costs as input where it has no price of its own."""
    cached = min(tokens.cached, tokens.input)
    parts = (
        (tokens.input - cached, price["input"]),
        (cached, price.get("cached", price["input"])),
        (tokens.output, price["output"]),
    )
    return round(sum(number * each for number, each in parts) / MILLION, 6)


def _number(raw: Any) -> int:
    return raw if type(raw) is int and 0 < raw <= _MOST else 0
