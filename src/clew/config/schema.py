"""JSON schema of ``config.toml`` for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.config.introspection import NAME_PLACEHOLDER, SettingDescription, describe_settings
from clew.config.lookup import CORE_CATALOG, PLUGINS
from clew.config.secret import REFERENCE_FORMS
from clew.config.settings import ChannelSettings, ProviderSettings

if TYPE_CHECKING:
    from clew.config.lookup import SettingsCatalog

_SECRET_SCHEMA: Final = {
    "description": "A secret, or where it is kept.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        *(
            {
                "type": "object",
                "properties": {form: {"type": "string", "minLength": 1}},
                "required": [form],
                "additionalProperties": False,
            }
            for form in REFERENCE_FORMS
        ),
    ],
}


def build_json_schema(catalog: SettingsCatalog = CORE_CATALOG) -> dict[str, Any]:
    """Return the schema, draft 2020-12."""
    tables: dict[str, Any] = {
        name: _table_schema(kind, closed=name != PLUGINS) for name, kind in catalog.sections.items()
    }
    tables[PLUGINS]["additionalProperties"] = {"type": "object"}
    for table, kind in catalog.feature_sections.items():
        if table not in tables:
            name = table.removeprefix(f"{PLUGINS}.")
            tables[PLUGINS]["properties"][name] = _table_schema(kind, closed=True)
    named = {
        "channels": _table_schema(ChannelSettings, closed=False),
        "providers": _table_schema(ProviderSettings, closed=True),
        **{
            table: _table_schema(kind, closed=True)
            for table, kind in catalog.feature_tables.items()
        },
    }
    for one in describe_settings(catalog):
        section, *rest = one.name.split(".")
        table = named[section] if rest[0] == NAME_PLACEHOLDER else tables[section]
        if len(rest) > 1 and section == PLUGINS:
            table = table["properties"][rest[0]]
        table["properties"][rest[-1]] = _property_schema(one)
    tables["channels"] = {
        "type": "object",
        "description": "Chat platforms, by name.",
        "additionalProperties": {"$ref": "#/$defs/channel"},
    }
    tables["providers"] = {
        "type": "object",
        "description": "Providers of models, by what stands before the colon in a model's name.",
        "additionalProperties": {"$ref": "#/$defs/provider"},
    }
    for table, kind in catalog.feature_tables.items():
        tables[table] = {
            "type": "object",
            "description": f"{kind.__doc__} By name.",
            "additionalProperties": {"$ref": f"#/$defs/{table}"},
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of Clew (config.toml)",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
        "$defs": {
            "secret": _SECRET_SCHEMA,
            "channel": named["channels"],
            "provider": named["providers"],
            **{table: named[table] for table in catalog.feature_tables},
        },
    }


def _table_schema(kind: type, *, closed: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "description": kind.__doc__,
        "properties": {},
        "additionalProperties": not closed,
    }


def _property_schema(one: SettingDescription) -> dict[str, Any]:
    made: dict[str, Any] = {"description": one.doc, **one.schema}
    if one.default is not None and one.default_doc is None:
        made["default"] = one.default
    return made
