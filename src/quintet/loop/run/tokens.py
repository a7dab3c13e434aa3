"""What turns have cost, by the agents' own records, and the limit of tokens at which a run stops."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from quintet.api.backend import Backend
from quintet.api.models import TokenCount
from quintet.config import Settings
from quintet.errors import ApiError, TokensUsedUp
from quintet.loop.decide.state import TerminalRef

MILLION: Final = 1_000_000


@dataclass(frozen=True)
class Spent:
    """What a turn has cost."""

    tokens: TokenCount | None = None
    """None where nobody counts them"""
    cost: float | None = None
    """money, where the user gave prices"""

    @property
    def total(self) -> int:
        return self.tokens.total if self.tokens else 0


@dataclass
class TokenLedger:
    """Adds up a turn. One that needed a reminder has several records, of which a server tells only the last."""

    settings: Settings
    warn: Callable[[str], None] = lambda _: None
    _earlier: list[TokenCount] = field(default_factory=list)
    _warned: bool = False

    def note(self, backend: Backend, terminal: str) -> None:
        """Remember what a turn has cost that goes on with another prompt."""
        if tokens := read_tokens(backend, terminal):
            self._earlier.append(tokens)

    def close(self, backend: Backend, terminal: TerminalRef, model: str) -> Spent:
        """What the turn has cost in all."""
        self.note(backend, terminal.id)
        parts, self._earlier = self._earlier, []
        if not parts:
            self._cannot_count(f"{terminal.provider} keeps no record of its tokens that can be read")
            return Spent()
        total = sum(parts, TokenCount())
        prices = self.settings.prices or {}
        price = prices.get(model) or prices.get(terminal.provider)
        return Spent(total, cost(total, price) if price else None)

    def check(self, used: int, backend: Backend) -> None:
        """Stop a run that has used up its tokens; warn where nobody counts them."""
        most = self.settings.max_tokens
        if not backend.counts_tokens:
            self._cannot_count("the server named by API tells of none")
        if most and used >= most:
            raise TokensUsedUp(f"{used:,} tokens are used and MAX_TOKENS is {most:,}; set a higher limit")

    def _cannot_count(self, why: str) -> None:
        """Warn once of a limit that cannot be kept."""
        most = self.settings.max_tokens
        if most and not self._warned:
            self._warned = True
            self.warn(f"MAX_TOKENS is {most:,}, but NOT ALL TOKENS ARE COUNTED and it may never stop this run: {why}")


def read_tokens(backend: Backend, terminal: str) -> TokenCount | None:
    """The tokens of a terminal's last turn; None where the server or the agent does not tell."""
    try:
        return backend.get_terminal(terminal).usage if backend.counts_tokens else None
    except ApiError:
        return None  # a figure is not worth a run


def cost(tokens: TokenCount, price: Mapping[str, float]) -> float:
    """Money by prices for a million tokens; what is cached costs as input where it has no price of its own."""
    cached = min(tokens.cached, tokens.input)
    parts = (
        (tokens.input - cached, price["input"]),
        (cached, price.get("cached", price["input"])),
        (tokens.output, price["output"]),
    )
    return round(sum(number * each for number, each in parts) / MILLION, 6)
