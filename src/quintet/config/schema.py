"""The settings table as a JSON schema, so that editors complete and check a `quintet.json`."""

from typing import Any, Final

from quintet.config.kinds import Choice, object_schema
from quintet.config.table import AGENT_KINDS, AGENTS_KEY, CAO_PROVIDERS, OWN_PROVIDERS, TABLE, Agent, Row, Settings
from quintet.roles import ROLES

SCHEMA_KEY: Final = "$schema"
"""names the schema within a config file; it is no setting"""
_PROVIDER: Final = Choice((*OWN_PROVIDERS, *CAO_PROVIDERS))


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
    head = {SCHEMA_KEY: "http://json-schema.org/draft-07/schema#", "title": "Settings of Quintet"}
    return head | object_schema(properties)


def _row_schema(row: Row) -> dict[str, Any]:
    default = getattr(Settings, row.name)
    kind = _PROVIDER if row.name == "provider" else row.kind
    shown = {"default": default} if isinstance(default, str | int | float) else {}
    return {"description": f"{row.meaning} ({row.env})", **kind.schema, **shown}


def _agent_schema(profile: str) -> dict[str, Any]:
    parts = {name: (_PROVIDER if name == "provider" else kind).schema for name, kind in AGENT_KINDS.items()}
    parts["profile"]["default"] = profile
    parts["model"]["default"] = Agent.model
    return object_schema(parts)
