"""The tokens of a turn, by the rule of its agent. Cached tokens are part of the input in our count."""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from quintet.providers.acp.host_settings import UsageRule
from quintet.providers.json_lines import as_object

_MOST: Final = 10**12
_WITH_CACHED: Final = frozenset({UsageRule.PROCESS, UsageRule.CHUNKS})
"""where the input has the cached tokens in it already"""


class Tokens(NamedTuple):
    """What was read and written."""

    input: int = 0
    cached: int = 0
    output: int = 0

    def plus(self, other: "Tokens") -> "Tokens":
        return Tokens(*(min(mine + its, _MOST) for mine, its in zip(self, other, strict=True)))

    def minus(self, other: "Tokens") -> "Tokens":
        """The difference of two sums; the whole where the sum has begun anew."""
        parts = [mine - its for mine, its in zip(self, other, strict=True)]
        return self if min(parts) < 0 else Tokens(*parts)

    def as_json(self) -> dict[str, int] | None:
        """As the record has it; None where nothing was told."""
        if not any(self):
            return None
        return {"input_tokens": self.input, "cached_tokens": self.cached, "output_tokens": self.output}


NO_TOKENS: Final = Tokens()


def read_tokens(raw: Any, rule: UsageRule) -> Tokens:
    """The counts of an object of the protocol. Where its total tells whether cached tokens are in it, that decides."""
    source = as_object(raw)
    read, written, thought = (_count(source.get(name)) for name in ("inputTokens", "outputTokens", "thoughtTokens"))
    cached, stored = (_count(source.get(name)) for name in ("cachedReadTokens", "cachedWriteTokens"))
    beside = rule not in _WITH_CACHED
    total = _count(source.get("totalTokens"))
    choices = sorted(product((beside, not beside), (False, True)), key=lambda choice: choice[0] != beside)
    for cached_beside, thought_beside in choices:
        whole = read + cached_beside * (cached + stored), written + thought_beside * thought
        if sum(whole) == total:
            break
    else:
        whole = read + beside * (cached + stored), written
    return Tokens(whole[0], min(cached, whole[0]), whole[1])


def turn_tokens(rule: UsageRule, result: Mapping[str, Any], chunks: Tokens, before: Tokens) -> tuple[Tokens, Tokens]:
    """The tokens of a turn that has ended, and the sum since the program's start where the agent tells that."""
    if rule is UsageRule.CHUNKS:
        return chunks, before
    if rule is UsageRule.QUOTA:
        quota = as_object(as_object(as_object(result.get("_meta")).get("quota")).get("token_count"))
        names = ("input_tokens", "cached_tokens", "output_tokens")
        return Tokens(*(_count(quota.get(name)) for name in names)), before
    told = read_tokens(result.get("usage"), rule)
    if rule is UsageRule.PROCESS and any(told):
        return told.minus(before), told
    return told, before


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= _MOST else 0
