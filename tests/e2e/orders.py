"""A model that does what the prompt says: the orders for a turn travel in the prompt's last lines, as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from tests.e2e.exchange import Reply, Request

MARK = "ORDERS:"


def orders(*steps: Mapping[str, Any]) -> str:
    """The line that makes the model answer so: one step for each of its answers in the turn, the last repeats."""
    return f"{MARK} {json.dumps(steps)}"


def ordered(request: Request) -> Reply:
    """The brain: the answer that the prompt asks for at this point of the turn."""
    _, mark, text = request.prompt.rpartition(MARK)
    if not mark:
        return Reply.say("Understood.")
    steps, _ = json.JSONDecoder().raw_decode(text.lstrip())
    return Reply(**steps[min(len(request.results), len(steps) - 1)])
