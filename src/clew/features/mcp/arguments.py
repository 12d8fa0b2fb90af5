"""Comparison of arguments with the JSON schema of a tool."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Without types of its own.
_jsonschema: Final[Any] = import_module("jsonschema")
#: Patterns are the server's affair: one can be made that takes hours.
_Validator: Final[Any] = _jsonschema.validators.extend(
    _jsonschema.Draft202012Validator, {"pattern": None, "patternProperties": None}
)
#: Knows nothing: a schema must not have anything fetched.
_REGISTRY: Final[Any] = import_module("referencing").Registry()


def is_schema(schema: Mapping[str, Any]) -> bool:
    """Return whether it is a JSON schema."""
    try:
        _jsonschema.Draft202012Validator.check_schema(dict(schema))
    except Exception:  # noqa: BLE001  (a server may send any schema)
        return False
    return True


def find_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with arguments; ``None`` if nothing is, or the schema is none."""
    try:
        found: Any = next(_Validator(schema, registry=_REGISTRY).iter_errors(arguments), None)
    except Exception:  # noqa: BLE001  (a server may send any schema)
        return None
    if found is None:
        return None
    place, message = ".".join(map(str, found.absolute_path)), str(found.message)[:300]
    return f"{place}: {message}" if place else message
