"""A permission that an agent asks for: its options, and which of them an answer means. By kind, never by id."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from quintet.providers.acp.json_rpc import AgentRequest, Id
from quintet.providers.json_lines import as_object, text_in

CANCELLED: Final = {"outcome": {"outcome": "cancelled"}}
_ALLOW: Final = ("allow_once", "allow_always")
_REJECT: Final = ("reject_once", "reject_always")
_MOST: Final = 9
"""options that have a key"""


class Option(NamedTuple):
    """One answer that the agent offers."""

    id: str
    kind: str
    name: str


class Permission(NamedTuple):
    """One question."""

    request: Id
    call: Mapping[str, Any]
    """what it tells of the tool call"""
    options: tuple[Option, ...]

    @property
    def call_id(self) -> str:
        return text_in(self.call, "toolCallId")

    def allow(self) -> Option | None:
        """The option that allows it, once where that is offered."""
        return self._first(_ALLOW)

    def reject(self) -> Option | None:
        return self._first(_REJECT)

    def by_key(self, key: str) -> Option | None:
        """The option that a key stands for: y, n or its number."""
        if key in ("y", "n"):
            return self.allow() if key == "y" else self.reject()
        number = int(key) if key.isdecimal() and key.isascii() else 0
        return self.options[number - 1] if 0 < number <= len(self.options) else None

    def _first(self, kinds: tuple[str, ...]) -> Option | None:
        found = [option for kind in kinds for option in self.options if option.kind == kind]
        return found[0] if found else None


def read_permission(request: AgentRequest) -> Permission:
    """The question in a request."""
    raw = request.params.get("options")
    found = [as_object(one) for one in raw] if isinstance(raw, list) else []
    options = [Option(text_in(one, "optionId"), text_in(one, "kind"), text_in(one, "name")) for one in found]
    return Permission(
        request.id, as_object(request.params.get("toolCall")), tuple(one for one in options if one.id)[:_MOST]
    )


def selected(option: Option | None) -> Mapping[str, Any]:
    """The answer with an option; without one the question is cancelled."""
    return {"outcome": {"outcome": "selected", "optionId": option.id}} if option else CANCELLED


def grants(option: Option | None) -> bool:
    """Whether an answer may let the tool run; of an unknown kind that cannot be said, so that it may."""
    return option is not None and option.kind not in _REJECT
