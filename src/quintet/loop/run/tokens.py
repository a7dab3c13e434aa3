"""What turns have cost, by the agents' own records, and the limits at which a run stops."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from quintet.api.backend import Backend
from quintet.api.models import TokenCount
from quintet.config import Settings
from quintet.errors import ApiError, CostUsedUp, TimeUsedUp, TokensUsedUp
from quintet.loop.decide.state import State, TerminalRef

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
    _warned: set[str] = field(default_factory=set)

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
        if not price:
            self._cannot_count(f"there is no price for {model or terminal.provider} in `prices`", "MAX_COST")
        return Spent(total, cost(total, price) if price else None)

    def check(self, state: State, backend: Backend) -> None:
        """Stop a run that has used up what it may; warn where nobody counts that."""
        settings, used = self.settings, state.tokens_used
        if not backend.counts_tokens:
            self._cannot_count("the server named by API tells of none")
        if settings.max_tokens and used >= settings.max_tokens:
            raise TokensUsedUp(
                f"{used:,} tokens are used and MAX_TOKENS is {settings.max_tokens:,}; set a higher limit"
            )
        if settings.max_cost and state.cost_used >= settings.max_cost:
            spent = f"the tokens have cost {state.cost_used:.2f} and MAX_COST is {settings.max_cost:g}"
            raise CostUsedUp(f"{spent}; set a higher limit")
        if settings.max_seconds and state.seconds_used >= settings.max_seconds:
            spent = f"agents were at work for {state.seconds_used:.0f} s and MAX_SECONDS is {settings.max_seconds:g}"
            raise TimeUsedUp(f"{spent}; set a higher limit")

    def _cannot_count(self, why: str, *names: str) -> None:
        """Warn once of a limit that cannot be kept."""
        limits = {"MAX_TOKENS": self.settings.max_tokens, "MAX_COST": self.settings.max_cost}
        for name in names or limits:
            if limits[name] and name not in self._warned:
                self._warned.add(name)
                told = f"{name} is {limits[name]:,}, but NOT ALL TOKENS ARE COUNTED and it may never stop this run"
                self.warn(f"{told}: {why}")


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
