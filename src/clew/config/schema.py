"""A JSON schema of ``config.toml``, for editors."""

from __future__ import annotations

from typing import Any, Final

from clew.config.describe import ANY, Description, describe
from clew.config.secret import FORMS
from clew.config.settings import SECTIONS, ChannelSettings

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
    channel = _table(ChannelSettings, closed=False)
    for one in describe():
        section, *rest = one.name.split(".")
        table = channel if rest[0] == ANY else tables[section]
        table["properties"][rest[-1]] = _property(one)
    tables["channels"] = {
        "type": "object",
        "description": "Chat platforms, by name.",
        "additionalProperties": {"$ref": "#/$defs/channel"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of Clew (config.toml)",
        "type": "object",
        "properties": tables,
        "additionalProperties": False,
        "$defs": {"secret": _SECRET, "channel": channel},
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
