"""Counts of tokens, as agents record them, servers tell them and people read them."""

from typing import Annotated, Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

MOST_TOKENS: Final = 10**12
"""whoever tells of more is wrong"""
_Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


def _count(name: str) -> Any:
    """A field with a longer name on the wire."""
    wire = f"{name}_tokens"
    return Field(default=0, validation_alias=AliasChoices(name, wire), serialization_alias=wire)


class TokenCount(BaseModel):
    """Tokens of a turn, by the agent's own record; the cached ones are part of the input."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    input: _Count = _count("input")
    cached: _Count = _count("cached")
    output: _Count = _count("output")

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "TokenCount") -> "TokenCount":
        return _bounded(self.input + other.input, self.cached + other.cached, self.output + other.output)

    def __sub__(self, other: "TokenCount") -> "TokenCount":
        return _bounded(self.input - other.input, self.cached - other.cached, self.output - other.output)


def _bounded(*counts: int) -> TokenCount:
    sensible = (min(max(count, 0), MOST_TOKENS) for count in counts)
    return TokenCount(**dict(zip(TokenCount.model_fields, sensible, strict=True)))


def recorded_tokens(read: Any, cached: Any = 0, written: Any = 0) -> TokenCount:
    """The counts in a record; 0 for what is not a sensible number."""
    return _bounded(*(raw if type(raw) is int and raw <= MOST_TOKENS else 0 for raw in (read, cached, written)))
