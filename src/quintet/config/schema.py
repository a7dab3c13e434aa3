"""The settings table as a JSON schema, so that editors complete and check a `quintet.json`."""

from typing import Any, Final

from quintet.config.kinds import Choice, object_schema
from quintet.config.table import (
    AGENT_KINDS,
    AGENTS_KEY,
    CAO_PROVIDERS,
    OWN_PROVIDERS,
    PROVIDER_KINDS,
    PROVIDERS_KEY,
    TABLE,
    Agent,
    Row,
    Settings,
)
from quintet.providers.registry import OWN_NAME
from quintet.roles import ROLES

SCHEMA_KEY: Final = "$schema"
"""names the schema within a config file; it is no setting"""
_KNOWN: Final = Choice((*OWN_PROVIDERS, *CAO_PROVIDERS)).schema
_PROVIDER: Final[dict[str, Any]] = {"anyOf": [_KNOWN, {"type": "string", "pattern": OWN_NAME}]}
"""a known name, or one that `providers` defines"""


def json_schema() -> dict[str, Any]:
    """The schema of a config file. It allows nothing that the loader refuses, except for what only a run can check."""
    properties: dict[str, Any] = {SCHEMA_KEY: {"type": "string", "description": "this schema, for editors"}}
    for row in TABLE:
        section, _, name = row.key.rpartition(".")
        place = properties
        if section:
            place = properties.setdefault(section, object_schema({}))["properties"]
        place[name] = _row_schema(row)
    properties[AGENTS_KEY] = object_schema({role.name: _agent_schema(role.profile) for role in ROLES}) | {
        "description": "how single agents differ from the others"
    }
    properties[PROVIDERS_KEY] = _own_schema()
    head = {SCHEMA_KEY: "http://json-schema.org/draft-07/schema#", "title": "Settings of Quintet"}
    only_known = {"properties": {"provider": _KNOWN}}
    agents = {AGENTS_KEY: {"additionalProperties": only_known}}
    defines = [{"required": [PROVIDERS_KEY]}, {"properties": {"provider": _KNOWN, **agents}}]
    return head | object_schema(properties) | {"anyOf": defines}


def _row_schema(row: Row) -> dict[str, Any]:
    default = getattr(Settings, row.name)
    schema = _PROVIDER if row.name == "provider" else row.kind.schema
    shown = {"default": default} if isinstance(default, str | int | float) else {}
    return {"description": f"{row.meaning} ({row.env})", **schema, **shown}


def _agent_schema(profile: str) -> dict[str, Any]:
    parts = {name: _PROVIDER if name == "provider" else kind.schema for name, kind in AGENT_KINDS.items()}
    parts["profile"]["default"] = profile
    parts["model"]["default"] = Agent.model
    return object_schema(parts)


def _own_schema() -> dict[str, Any]:
    parts = object_schema({name: kind.schema for name, kind in PROVIDER_KINDS.items()})
    return {
        "description": "agents of your own that speak the Agent Client Protocol, by name",
        "type": "object",
        "propertyNames": {"pattern": OWN_NAME, "not": {"enum": list(OWN_PROVIDERS)}},
        "additionalProperties": parts | {"required": ["command"]},
    }
