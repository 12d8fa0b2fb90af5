"""A JSON schema of ``config.toml``, for editors."""

from __future__ import annotations

from typing import Any, Final

from clew.config.describe import ANY, Description, describe
from clew.config.secret import FORMS
from clew.config.settings import SECTIONS, ChannelSettings, ProviderSettings

_SECRET: Final = {
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
            for form in FORMS
        ),
    ],
}


def json_schema() -> dict[str, Any]:
    """The schema, draft 2020-12."""
    tables: dict[str, Any] = {
        name: _table(kind, closed=name != "plugins") for name, kind in SECTIONS.items()
    }
    tables["plugins"]["additionalProperties"] = {"type": "object"}
    named = {
        "channels": _table(ChannelSettings, closed=False),
        "providers": _table(ProviderSettings, closed=True),
    }
    for one in describe():
        section, *rest = one.name.split(".")
        table = named[section] if rest[0] == ANY else tables[section]
        table["properties"][rest[-1]] = _property(one)
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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of Clew (config.toml)",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
        "$defs": {"secret": _SECRET, "channel": named["channels"], "provider": named["providers"]},
    }


def _table(kind: type, *, closed: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "description": kind.__doc__,
        "properties": {},
        "additionalProperties": not closed,
    }


def _property(one: Description) -> dict[str, Any]:
    made: dict[str, Any] = {"description": one.doc, **one.schema}
    if one.default is not None and one.default_doc is None:
        made["default"] = one.default
    return made
