"""The settings table as a JSON schema, so that editors complete and check a `quintet.json`."""

from typing import Any, Final

from quintet.config.kinds import Choice, Flag, Kind, Prices, Seconds, Text, Whole, Words
from quintet.config.table import AGENT_KINDS, AGENTS_KEY, CAO_PROVIDERS, OWN_PROVIDERS, TABLE, Agent, Row, Settings
from quintet.roles import ROLES

SCHEMA_KEY: Final = "$schema"
"""names the schema within a config file; it is no setting"""
_PROVIDER: Final = Choice((*OWN_PROVIDERS, *CAO_PROVIDERS))
_PRICE: Final = {"type": "number", "minimum": 0}


def json_schema() -> dict[str, Any]:
    """What a config file may hold. It allows nothing that the loader refuses, but for what only a run can check."""
    properties: dict[str, Any] = {SCHEMA_KEY: {"type": "string", "description": "this schema, for editors"}}
    for row in TABLE:
        section, _, name = row.key.rpartition(".")
        place = properties
        if section:
            place = properties.setdefault(section, _object({}))["properties"]
        place[name] = _of_row(row)
    properties[AGENTS_KEY] = _object({role.name: _agent(role.profile) for role in ROLES}) | {
        "description": "how single agents differ from the others"
    }
    head = {SCHEMA_KEY: "http://json-schema.org/draft-07/schema#", "title": "Settings of Quintet"}
    return head | _object(properties)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _of_row(row: Row) -> dict[str, Any]:
    default = getattr(Settings, row.name)
    kind = _PROVIDER if row.name == "provider" else row.kind
    shown = {"default": default} if isinstance(default, str | int | float) else {}
    return {"description": f"{row.meaning} ({row.env})", **of_kind(kind), **shown}


def _agent(profile: str) -> dict[str, Any]:
    parts = {name: of_kind(_PROVIDER if name == "provider" else kind) for name, kind in AGENT_KINDS.items()}
    parts["profile"]["default"] = profile
    parts["model"]["default"] = Agent.model
    return _object(parts)


def of_kind(kind: Kind) -> dict[str, Any]:
    """The values of one kind."""
    match kind:
        case Choice():
            return {"type": "string", "enum": list(kind.names)}
        case Flag():
            return {"type": "boolean"}
        case Whole():
            return {"type": "integer", "minimum": kind.at_least, "maximum": kind.at_most}
        case Seconds():
            return {"type": "number", "minimum": kind.at_least, "maximum": kind.at_most}
        case Words():
            return {"type": "array", "items": {"type": "string"}}
        case Prices():
            price = _object({"input": _PRICE, "cached": _PRICE, "output": _PRICE}) | {"required": ["input", "output"]}
            return {"type": "object", "additionalProperties": price}
        case Text():
            return {"type": "string"} if kind.may_be_empty else {"type": "string", "minLength": 1}
        case _:
            raise TypeError(f"{kind!r} has no JSON schema")
