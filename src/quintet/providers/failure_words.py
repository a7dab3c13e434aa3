"""What kept a turn from its answer, found by the words of an error."""

import re
from typing import Final

from quintet.api.status import FailureKind

# an empty account is no limit that ends by itself
_KINDS: Final = (
    (("quota", "insufficient"), FailureKind.OTHER),
    (("usage_limit", "usage limit"), FailureKind.USAGE_LIMIT),
    (
        ("status: 429", "status 429", 'code": 429', "too many requests", "rate limit", "rate_limit"),
        FailureKind.RATE_LIMIT,
    ),
    (("unauthorized", "status 401", "refresh token", "sign in", "log in"), FailureKind.LOGIN),
    (
        ("server_error", "server error", "server had an error", "overloaded", "status 5", "high demand"),
        FailureKind.SERVER_ERROR,
    ),
    (("stream", "connection", "retry limit", "too_many_failed"), FailureKind.CONNECTION),
)
_MODEL = re.compile(
    r"model_not_found|\b(?:unknown|invalid|no such) model\b"
    r"|\bmodels?\b(?:[^.\n]|\.\S){0,100}\b(?:not found|does not exist|is not supported)\b"
)
_LONGEST: Final = 2000
"""characters in which a model is looked for"""


def failure_kind(text: str) -> FailureKind:
    """The kind of failure that an error's text tells of."""
    hints = text.lower()
    otherwise = FailureKind.MODEL if _MODEL.search(hints[:_LONGEST]) else FailureKind.OTHER
    return next((kind for words, kind in _KINDS if any(word in hints for word in words)), otherwise)
